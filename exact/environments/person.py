"""Questions of an environment to the person who watches it: whether a write may be sent, and questions of the agent."""

from __future__ import annotations

from typing import Literal, Protocol

import msgspec


class PersonQuestion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One question to a person."""

    kind: Literal["write", "action", "question"]
    """`write`: may this request be sent? `action`: may this action be carried out? `question`: what does the person answer the agent?"""
    text: str
    """The action, or the agent's question. Secrets are masked."""
    method: str = ""
    """HTTP method of the request."""
    url: str = ""
    """Address of the request, with secrets masked."""
    fields: dict[str, str] = {}
    """Fields of the request's body, with secrets masked and long values cut."""
    digest: str = ""
    """Hex SHA-256 of method, address and whole body, to which an answer is bound."""


class Person(Protocol):
    """A person who can be asked."""

    async def allows(self, question: PersonQuestion) -> str:
        """Return the reason if a write or an action is not allowed; empty if it is. Without an answer in time it is not."""
        ...

    async def answer(self, question: PersonQuestion) -> str | None:
        """Return the answer to an agent's question; None if none came in time."""
        ...
