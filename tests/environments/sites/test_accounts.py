"""Log-ins for branches."""

from __future__ import annotations

import asyncio
import html
import json
from collections.abc import Callable
from functools import partial

import pytest

from exact.environments.sites.accounts import Accounts, Login
from exact.environments.sites.site import Account
from exact.errors import EnvironmentFailure, UsageError

ANN = Account(name="ann", fields={"user": "ann@shop.test", "password": "$ANN"})
BOB = Account(name="bob", fields={"user": "bob@shop.test", "password": "$BOB"})
ENVIRON = {"ANN": "hunter 2&", "BOB": "other"}


async def test_the_longest_waiting_request_gets_the_next_account() -> None:
    accounts = Accounts([ANN], ENVIRON)
    login, order = await accounts.lease(), list[int]()

    async def branch(number: int) -> None:
        mine = await accounts.lease()
        order.append(number)
        accounts.release(mine)

    waiting = [asyncio.ensure_future(branch(number)) for number in range(4)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    accounts.release(login)
    await asyncio.gather(*waiting, return_exceptions=True)
    assert order == [0, 2, 3] and (await accounts.lease()).name == "ann"


async def test_a_fork_that_gives_up_while_it_is_served_passes_its_log_in_on() -> None:
    accounts = Accounts([ANN], ENVIRON)
    login = await accounts.lease()
    waiting = [asyncio.ensure_future(accounts.lease()) for _ in range(2)]
    await asyncio.sleep(0)
    accounts.release(login)
    waiting[0].cancel()
    assert await waiting[1] is login


async def test_a_state_comes_back_with_its_own_log_in_only() -> None:
    accounts = Accounts([ANN, BOB], ENVIRON)
    assert accounts.take("bob").name == "bob" and (await accounts.lease()).name == "ann"
    with pytest.raises(EnvironmentFailure, match="another environment uses the log-in bob"):
        accounts.take("bob")


def test_a_variable_that_is_not_set_is_named() -> None:
    with pytest.raises(UsageError, match=r"account ann: password is \$ANN, which is not set: export ANN="):
        Accounts([ANN], {})


def test_secrets_are_typed_but_read_as_names() -> None:
    login = Login(ANN, ENVIRON)
    assert login.fill("<user>: <password>") == login.fill("<secret:user>: <secret:password>") == "ann@shop.test: hunter 2&"
    assert login.named("a <b> <password>") == "<secret:password>" and not login.named("<secret:other> <secret>")
    assert (
        login.mask("Hello ann@shop.test, hunter 2& /?p=hunter+2%26&q=hunter%202%26")
        == "Hello <secret:user>, <secret:password> /?p=<secret:password>&q=<secret:password>"
    )
    assert "hunter" not in repr(login)


@pytest.mark.parametrize("written", [json.dumps, partial(json.dumps, ensure_ascii=False), html.escape, partial(html.escape, quote=False)])
def test_a_secret_is_a_name_however_it_is_written(written: Callable[[str], str]) -> None:
    login = Login(ANN, {"ANN": "p\"a\\ss&wörd'<3"})
    assert login.mask(written(login.fill("<password>"))).strip('"') == "<secret:password>"


def test_a_secret_is_a_name_as_browsers_write_it_in_forms_and_addresses() -> None:
    login = Login(ANN, {"ANN": "it's (5*~)!&"})
    assert login.mask("it%27s+%285*%7E%29%21%26 it's%20(5*~)!%26") == "<secret:password> <secret:password>"
