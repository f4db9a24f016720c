"""Frames of captchas are elements until they are solved; badges and other frames are none."""

from __future__ import annotations

import pytest

from exact.runs.attempt.ending import needs_user
from tests.conftest import Visit

pytestmark = pytest.mark.asyncio(loop_scope="session")

ASKS = {
    "recaptcha": '<iframe title="reCAPTCHA" src="https://captcha.test/recaptcha/api2/anchor?size=normal" width=300 height=74></iframe>',
    "hcaptcha": '<iframe title="Widget containing checkbox for hCaptcha security challenge" src="https://a.hcaptcha.com/x"></iframe>',
    "turnstile without a title": '<iframe src="https://challenges.cloudflare.com/turnstile/if"></iframe>',
    "in a shadow": "<div id=w></div><script>w.attachShadow({mode: 'closed'}).innerHTML ="
    ' \'<iframe title="Widget containing a Cloudflare security challenge" src="https://challenges.cloudflare.com/t"></iframe>\'</script>',
}
ASKS_NOT = {
    "badge": '<iframe title="reCAPTCHA" src="https://captcha.test/recaptcha/api2/anchor?size=invisible" width=256 height=60></iframe>',
    "hidden": '<iframe title="recaptcha challenge expires in two minutes" src="https://captcha.test/" style="display: none"></iframe>',
    "solved": f"{ASKS['recaptcha']}<textarea name=g-recaptcha-response style='display: none'>03AGdBq2</textarea>",
    "another frame": '<iframe title="Advertisement" src="https://ads.test/"></iframe>',
}


@pytest.mark.parametrize("page", ASKS.values(), ids=ASKS)
async def test_a_captcha_in_a_frame_needs_a_person(page: str, visit: Visit) -> None:
    async with visit(f"<h1>One moment</h1>{page}") as (_, seen):
        assert "captcha" in needs_user(seen), seen.text


@pytest.mark.parametrize("page", ASKS_NOT.values(), ids=ASKS_NOT)
async def test_other_frames_need_nobody(page: str, visit: Visit) -> None:
    async with visit(f"<h1>One moment</h1>{page}") as (_, seen):
        assert not needs_user(seen) and not any(each.role == "Iframe" for each in seen.elements)
