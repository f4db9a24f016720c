"""D-Bus messages as bytes, compared with jeepney's codec."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from exact.environments.desktop import wire

jeepney = pytest.importorskip("jeepney")

CASES: list[tuple[str, tuple[Any, ...]]] = [
    ("", ()),
    ("s", ("Grüße \N{SNOWMAN}",)),
    ("ii", (-5, 7)),
    ("iiu", (1, -2, 3)),
    ("isi", (4, "x" * 300, -1)),
    ("ss", ("org.a11y.atspi.Accessible", "Name")),
]
REPLIES: list[tuple[str, tuple[Any, ...]]] = [
    ("v", (("s", "a name"),)),
    ("v", (("(so)", (":1.7", "/org/a11y")),)),
    ("as", ([],)),
    ("au", ([1, 1 << 31],)),
    ("a(so)", ([(":1.2", "/a"), (":1.30", "/bc")],)),
    ("a{ss}", ({"tag": "p", "class": ""},)),
    ("a((so)(so)(so)iiassusau)", ([((":1", "/a"), (":1", "/b"), (":1", "/c"), 3, -1, ["x", "yy"], "name", 33, "", [1, 2])] * 2,)),
    ("bdxy", (True, 1.5, -(1 << 40), 200)),
]


@pytest.mark.parametrize(("signature", "arguments"), CASES)
def test_a_call_is_what_jeepney_reads(signature: str, arguments: tuple[Any, ...]) -> None:
    data = wire.method_call(1234, ":1.5", "/org/a11y/x" + "y" * len(signature), "org.a11y.atspi.Text", "GetText", signature, arguments)
    parser = jeepney.low_level.Parser()
    parser.add_data(data)
    message = parser.get_next_message()
    fields = {key.name: value for key, value in message.header.fields.items()}
    assert (message.header.serial, message.body) == (1234, arguments)
    assert (fields["destination"], fields["interface"], fields["member"]) == (":1.5", "org.a11y.atspi.Text", "GetText")


@pytest.mark.parametrize(("signature", "body"), REPLIES)
def test_an_answer_is_read_as_jeepney_wrote_it(signature: str, body: tuple[Any, ...]) -> None:
    call = jeepney.new_method_call(jeepney.DBusAddress("/a", "b.c", "d.e"), "F")
    call.header.serial = 77
    call.header.fields[jeepney.HeaderFields.sender] = ":1.9"
    data = jeepney.new_method_return(call, signature, body).serialise(serial=5)
    for cut in (0, 10, len(data) - 1):
        assert wire.message_size(data[:cut], 0) in (0, len(data))
    assert wire.message_size(b"12345678" + data, 8) == len(data)
    assert wire.read_message(data) == wire.WireMessage(wire.RETURN, 77, body)


def test_another_byte_order_is_refused() -> None:
    with pytest.raises(ValueError, match="another byte order"):
        wire.message_size(b"B" + bytes(20), 0)


def reply(signature: str, body: tuple[object, ...]) -> bytearray:
    call = jeepney.new_method_call(jeepney.DBusAddress("/a", "b.c", "d.e"), "F")
    call.header.serial, call.header.fields[jeepney.HeaderFields.sender] = 77, ":1.9"
    return bytearray(jeepney.new_method_return(call, signature, body).serialise(serial=5))


def test_a_field_of_the_head_that_has_another_type_is_a_value_error() -> None:
    whole = reply("s", ("a name",))
    for at in range(16, len(whole)):
        for byte in b"uygs":
            with suppress(ValueError):
                wire.read_message(bytes([*whole[:at], byte, *whole[at + 1 :]]))


@settings(max_examples=300)
@given(data=st.data())
def test_damaged_messages_are_a_value_error_and_nothing_else(data: st.DataObject) -> None:
    signature, body = data.draw(st.sampled_from(REPLIES))
    written = reply(signature, body)
    for at in data.draw(st.lists(st.integers(16, len(written) - 1), min_size=1, max_size=4)):
        written[at] = data.draw(st.integers(0, 255))
    with suppress(ValueError):
        wire.read_message(bytes(written[: data.draw(st.integers(16, len(written)))]))
