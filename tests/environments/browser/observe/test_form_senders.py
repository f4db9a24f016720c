"""Which elements send a form that may write."""

import pytest

from exact.runs.attempt.agent_calls import sends_form
from tests.conftest import Visit
from tests.environments.browser.pages import do, find, look

pytestmark = pytest.mark.asyncio(loop_scope="session")

FORMS = """<form method=get action=/s><input aria-label=Query><button>Search</button><button formmethod=POST>Subscribe</button></form>
<form id=f method=" Post " action=/p><input aria-label=Comment><textarea aria-label=Long></textarea><input type=checkbox aria-label=Tick>
<button>Send</button><button type=button>Preview</button><input type=reset value=Clear><input type=submit value=Draft>
<button formmethod=get>Look</button></form><form method=dialog><button>Close</button></form>
<button form=f>Remote</button><button>Alone</button>"""


async def test_controls_of_a_posted_form_are_distinguished_from_all_others(visit: Visit) -> None:
    async with visit(FORMS) as (_, seen):
        told = [element.name for element in seen.elements if element.id in seen.senders]
        assert told == ["Subscribe", "Comment", "Send", "Draft", "Remote"]


async def test_a_click_on_its_button_or_enter_in_its_field_is_presumed_to_write(visit: Visit) -> None:
    async with visit(FORMS) as (env, seen):

        def presumed(text: str) -> bool:
            return sends_form(env.actions.parse(text), seen)

        assert presumed(f"click [{find(seen, 'Send').id}]")
        assert not presumed(f"click [{find(seen, 'Comment').id}]")
        assert not presumed(f"click [{find(seen, 'Search').id}]")
        assert not presumed(f'fill [{find(seen, "Comment").id}] "Enter"')
        assert not presumed('press "Enter"')
        seen = await look(env, f"click [{find(seen, 'Comment').id}]")
        assert presumed('press "Enter"')
        assert not presumed('press "Tab"')
        seen = await look(env, f"click [{find(seen, 'Query').id}]")
        assert not presumed('press "Enter"')


async def test_a_page_without_such_a_form_says_nothing_of_it(visit: Visit) -> None:
    async with visit("<form><button>Go</button></form><button>On</button>") as (env, seen):
        assert seen.senders == ()
        assert (await do(env, f"click [{find(seen, 'On').id}]")).observation is not None


@pytest.mark.parametrize(
    "page",
    [
        "<div><form method=post action=/p><div>Text</div></div><input type=submit value=OK></form>",
        "<section><form method=post action=/p><p>Text</section><p><button type=submit>OK</button></form>",
    ],
)
async def test_a_button_that_the_parser_gave_to_a_form_not_around_it_sends_that_form(page: str, visit: Visit) -> None:
    async with visit(page) as (_, seen):
        assert seen.senders == (find(seen, "OK").id,)
