"""The change that the address of a GET announces. A GET should only read, but many applications write by it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import parse_qsl, unquote, unquote_plus

from exact.environments.base import SAFE_METHODS
from exact.environments.browser.presume.words import words_of
from exact.origins import split_url

_METHODS = frozenset(
    {"_method", "x-http-method-override", "x-http-method", "x-method-override", "http-method", "_httpmethod", "http-method-override"}
)
"""Names of headers and parameters by which a request asks to be taken for one of another method, with `-` for `_` within them."""
_SEPARATORS = re.compile(r"[&;]")
_END_OF_NAME = re.compile(r"[\[\]\0]")
"""Characters at which servers end the name of a parameter: brackets of an array, and NUL."""
_WORDS = words_of(
    "accept activate approve archive ban block buy cancel clone deactivate decline delete deploy destroy disable discard "
    "downvote drop duplicate enable erase execute follow install kill logout merge mute pay publish purchase purge reject "
    "remove rename reorder restart restore revert revoke rollback save send signout subscribe suspend terminate toggle "
    "trash unarchive unblock unfollow uninstall unlike unpin unpublish unstar unsubscribe untrash unwatch update upvote "
    "vote watch withdraw loschen loeschen entfernen kaufen bestellen senden speichern supprimer acheter envoyer enregistrer "
    "eliminar borrar comprar enviar guardar elimina acquista invia salva excluir apagar salvar verwijderen kopen opslaan "
    "usun kup wyslij zapisz udalit kupit"
)
"""Commands in addresses. `add`, `create`, `edit` and `new` are none: a GET of these shows a form."""
_LAST = frozenset({"delete", "remove", "destroy", "purchase", "publish", "unsubscribe", "logout"})
"""Commands that may also end a part of an address: `item-delete`."""
_CARTS = frozenset({"cart", "basket", "bag", "wishlist", "warenkorb", "panier", "carrito", "carrello", "carrinho", "koszyk"})
_VERBS = frozenset({"action", "act", "cmd", "command", "do", "event", "func", "function", "mode", "op", "operation", "task", "wc-ajax"})
"""Names of parameters whose value is a command."""
_LONGEST = 3
"""Words of a part of an address that can be a command. A longer part is a title."""
_MOST_TOKENS = 20_000
"""Tokens of a GraphQL document that are read. A longer document counts as one that writes."""


def overriding_methods(headers: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the methods that the headers of a request ask for in place of the sent one, each header's in its order.

    >>> overriding_methods([("X-HTTP-Method-Override", "GET"), ("x_http_method", "delete")])
    ('GET', 'DELETE')
    """
    return tuple(each for name, value in headers if _plain(name) in _METHODS for each in _methods(value))


def overridden_methods(url: str) -> tuple[str, ...]:
    """Return the methods that the parameters of an address ask for in place of the sent one, in its query and in its path.

    Names count in each spelling that servers take for them: as arrays, in any case, after `;`, before NUL.

    >>> overridden_methods("http://shop.test/items/3?_method[]=delete&_METHOD=get")
    ('DELETE', 'GET')
    """
    parts = split_url(url)
    given = (*_SEPARATORS.split(parts.query), *parts.path.split(";")[1:])
    pairs = (each.partition("=")[::2] for each in given)
    return tuple(each for name, value in pairs if _plain(unquote_plus(name)) in _METHODS for each in _methods(unquote_plus(value)))


def asks_to_write(methods: Iterable[str]) -> bool:
    """Return whether one of the methods that a request asks for is not known to read only."""
    return any(each not in SAFE_METHODS for each in methods)


def _plain(name: str) -> str:
    """Return the name that a server may read: PHP takes signs at its beginning for `_`, Python takes `_` and `-` in headers for one."""
    name = name.strip().lower()
    bare = name[:1].replace("[", "_").replace(".", "_") + _END_OF_NAME.split(name[1:])[0]
    return bare[:1] + bare[1:].replace("_", "-").replace(" ", "-").replace(".", "-")


def _methods(value: str) -> Iterator[str]:
    for each in value.replace("\0", ",").split(","):
        if method := each.strip().upper():
            yield method


def graphql_in(url: str) -> set[str]:
    """Return the kinds of the GraphQL operations in an address, as `operations` does. Empty if it is not GraphQL.

    Each parameter of the name counts, since a server may read any of them.
    """
    given = (each.partition("=")[::2] for each in _SEPARATORS.split(split_url(url).query))
    values = [(_plain(unquote_plus(name)), unquote_plus(value)) for name, value in given]
    texts = [text for name, value in values for text in ((value,) if name == "query" else queries_in(value))]
    return {kind for text in texts if "{" in text for kind in operations(text)}


def queries_in(text: str) -> list[str]:
    """Return the texts that JSON names `query`, at any depth, each of those with the same name too. Empty if it is not JSON."""
    found = list[str]()

    def keep(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found.extend(value for name, value in pairs if name == "query" and isinstance(value, str))
        return dict(pairs)

    try:
        if text[:1] in "{[" and text:
            json.loads(text, object_pairs_hook=keep)
    except (ValueError, RecursionError):
        return []
    return found


def operations(text: str) -> set[str]:
    """Return the kinds of the operations in a GraphQL document: `query`, `mutation`, `subscription`.

    A text that is not one document yields `unreadable`: a server may read it in another way.
    """
    from graphql import GraphQLError, OperationDefinitionNode, parse

    try:
        document = parse(text, no_location=True, max_tokens=_MOST_TOKENS)
    except (GraphQLError, RecursionError):
        return {"unreadable"}
    return {each.operation.value for each in document.definitions if isinstance(each, OperationDefinitionNode)} or {"unreadable"}


def address_writes(url: str) -> bool:
    """Return whether an address asks for a method that writes, or holds GraphQL that is not known to read only."""
    return asks_to_write(overridden_methods(url)) or writes_by_graphql(graphql_in(url))


def writes_by_graphql(kinds: set[str]) -> bool:
    """Return whether one of the kinds of operations may change something."""
    return bool(kinds - {"query", "subscription"})


def writing_address(url: str) -> str:
    """Return the part of an address that announces a change by a GET; empty if there is no such part.

    It is a guess, for the time of a search only: many applications ask before they delete.

    >>> writing_address("http://shop.test/cart/add?id=3"), writing_address("http://blog.test/how-to-delete-old-files")
    ('cart/add', '')
    """
    parts = split_url(url)
    segments = [segment for segment in unquote(parts.path).split("/") if segment]
    pair = "/".join(segments[-2:]).lower()
    if len(segments) > 1 and segments[-1].lower() in ("add", "remove", "update") and segments[-2].lower() in _CARTS:
        return pair
    for segment in segments[-2:]:
        if _is_command(segment):
            return segment
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name.lower() in _VERBS and _is_command(value):
            return f"{name}={value}"
        if _is_command(name) and (value == "" or _is_identifier(value)):
            return name
        if name.lower() in ("operationname", "extensions") and (found := _named_operation(name, value)):
            return found
    return ""


def _named_operation(name: str, value: str) -> str:
    """Return the name of a persisted GraphQL operation that announces a change."""
    words = _split(value) if name.lower() == "operationname" else []
    return value if words and words[0] in _WORDS | {"add", "create", "set", "submit", "place", "edit", "insert", "upsert"} else ""


def _is_command(text: str) -> bool:
    """Return whether a part of an address is a command: `delete`, `removeItem`, `add-to-cart`."""
    words = _split(text)
    if not words or len(words) > _LONGEST:
        return False
    return words[0] in _WORDS or words[-1] in _LAST or (words[0] in ("add", "addto") and bool(_CARTS & set(words)))


def _is_identifier(value: str) -> bool:
    return bool(re.fullmatch(r"[\w-]{1,40}", value)) and (any(each.isdigit() for each in value) or value.lower() in ("true", "yes", "on"))


def _split(text: str) -> list[str]:
    """Return the words of an identifier: `removeItem`, `remove-item` and `remove_item.php` have two."""
    bare = re.sub(r"\.(?:php|aspx?|jsp|html?|do|cgi)$", "", text, flags=re.I)
    return [each.lower() for each in re.findall(r"[A-Z]?[a-zß-ÿ]+|[A-Z]+(?![a-z])|\d+", bare)]
