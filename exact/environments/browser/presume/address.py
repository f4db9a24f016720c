"""The change that the address of a GET announces. A GET should only read, but many applications write by it."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, unquote

from exact.environments.browser.presume.words import words_of
from exact.origins import split_url

_METHODS = frozenset({"_method", "x-http-method-override", "x-http-method", "http_method", "_httpmethod"})
"""Names of parameters by which a request asks to be taken for one of another method."""
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
_OPERATION = re.compile(r"(?:^|[}\s])\s*(mutation|subscription|query)\b|^\s*(\{)")


def overridden_method(url: str) -> str:
    """Return the method that the parameters of an address ask for in place of the sent one; empty if they ask for none.

    >>> overridden_method("http://shop.test/items/3?_method=delete")
    'DELETE'
    """
    asked = [value for name, value in parse_qsl(split_url(url).query) if name.lower() in _METHODS]
    return next((value.strip().upper() for value in asked if value.strip().isalpha()), "")


def graphql_in(url: str) -> set[str]:
    """Return the kinds of the GraphQL operations in an address: `query`, `mutation`, `subscription`. Empty if it is not GraphQL."""
    given = dict(parse_qsl(split_url(url).query))
    return operations(given["query"]) if "query" in given and "{" in given["query"] else set()


def operations(text: str) -> set[str]:
    """Return the kinds of the operations in a GraphQL document."""
    bare = re.sub(r"#[^\n]*|\"[^\"\n]*\"", "", text)
    return {match[1] or "query" for match in _OPERATION.finditer(bare)}


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
