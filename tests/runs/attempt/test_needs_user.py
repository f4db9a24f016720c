"""Pages that only a person can pass."""

from __future__ import annotations

import pytest

from exact.observation import Element, Observation
from exact.runs.attempt.ending import needs_user


def page(*elements: tuple[str, str], value: str | None = None, states: tuple[str, ...] = ()) -> Observation:
    found = tuple(Element(id=str(i), role=role, name=name, value=value, states=states) for i, (role, name) in enumerate(elements))
    return Observation(text="", fingerprint="f", url="http://shop.test/login", elements=found)


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("checkbox", "I'm not a robot"),
        ("Iframe", "reCAPTCHA"), ("checkbox", "Verify you are human"), ("checkbox", "Ich bin kein Roboter"),
        ("Iframe", "Widget containing a Cloudflare security challenge"), ("textbox", "Captcha"), ("checkbox", "私はロボットではありません"),
        ("checkbox", "Je ne suis pas un robot"), ("checkbox", "Я не робот"), ("Iframe", "hCaptcha challenge"),
    ],
)  # fmt: skip
def test_a_captcha_is_seen_by_its_control(role: str, name: str) -> None:
    assert needs_user(page(("heading", "Log in"), (role, name))) == "a captcha at http://shop.test/login"


@pytest.mark.parametrize(
    "name",
    [
        "Verification code",
        "Enter the 6-digit code",
        "One-time password",
        "2FA",
        "Sicherheitscode",
        "Code de vérification",
        "验证码",
        "Код из СМС",
    ],
)
def test_a_second_factor_is_seen_by_its_field(name: str) -> None:
    assert needs_user(page(("textbox", name))) == "the code of a second factor at http://shop.test/login"


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("StaticText", "Solve the captcha to go on"),
        ("heading", "How captchas work"), ("link", "reCAPTCHA terms"), ("textbox", "Postal code"),
        ("textbox", "Discount code"), ("textbox", "Search"), ("checkbox", "Remember me"),
    ],
)  # fmt: skip
def test_a_page_that_only_writes_of_it_needs_nobody(role: str, name: str) -> None:
    assert not needs_user(page((role, name)))


def test_what_is_filled_in_or_checked_already_needs_nobody() -> None:
    assert not needs_user(page(("textbox", "Verification code"), value="123456"))
    assert not needs_user(page(("checkbox", "I'm not a robot"), states=("checked",)))
