"""Pages that only a person can pass: a captcha, or the code of a second factor."""

from __future__ import annotations

import re

from exact.observation import Observation

NEEDS_USER = "needs_user"
"""Beginning of the reason of an attempt that ended at such a page, and the status of its result."""
_ROBOT = re.compile(
    r"not a robot|verify (?:that )?you(?:'re| are) (?:a )?human|human verification|re-?captcha|h-?captcha|"
    r"\bcaptcha\b|cloudflare security challenge|"
    r"turnstile challenge|kein roboter|pas un robot|no soy un robot|non sono un robot|não sou um robô|geen robot|"
    r"nie jestem robotem|"
    r"я не робот|不是机器人|不是機器人|人机验证|人機驗證|ロボットではありません",
    re.I,
)
"""Names of the controls of a captcha."""
_CODE = re.compile(
    r"(?:verification|authentication|authenticator|security|one[- ]time|confirmation|two[- ]factor|two[- ]step|login|sms)"
    r" ?-?(?:code|passcode|pin)\b|"
    r"\b(?:2fa|otp|totp|mfa)\b|one[- ]time password|[456][- ]digit code|bestätigungscode|sicherheitscode|"
    r"einmalpasswort|code de (?:vérification|sécurité)|"
    r"código de (?:verificación|seguridad|verificação|segurança)|codice di (?:verifica|sicurezza)|verificatiecode|"
    r"beveiligingscode|"
    r"kod (?:weryfikacyjny|bezpieczeństwa)|код (?:подтверждения|из смс)|验证码|驗證碼|認証コード|確認コード",
    re.I,
)
"""Names of the fields of a second factor."""
_CONTROLS = ("checkbox", "Iframe", "iframe", "button", "textbox", "img", "image")
_FIELDS = ("textbox", "spinbutton")


def needs_user(seen: Observation) -> str:
    """Return what a page asks of a person that an agent cannot do; empty where it asks nothing of the kind.

    Only controls count: a page may write of captchas.
    """
    for each in seen.elements:
        if each.role in _CONTROLS and "checked" not in each.states and _ROBOT.search(each.name):
            return f"a captcha at {seen.url}"
        if each.role in _FIELDS and not each.value and _CODE.search(each.name):
            return f"the code of a second factor at {seen.url}"
    return ""
