"""Short values and user names are replaced as whole words; the words that their letters stand in stay."""

from __future__ import annotations

import io
import json

import pytest
from PIL import Image

from exact.environments.sites.accounts import Login
from exact.environments.sites.site import Account
from exact.secrecy.scrubber import Scrubber
from exact.secrecy.values import Secret

ANN = Scrubber([Secret("user", "ann"), Secret("pin", "4711"), Secret("word", "Otter7!")])


@pytest.mark.parametrize(
    "text", ["Open the banner manual in the annual planning channel.", "Annabel, Hannah and annex", "147110", "ann_marie", "Potter7!"]
)
def test_words_in_which_a_short_value_stands_stay(text: str) -> None:
    assert ANN.text(text) == text
    assert ANN.texts([text, "x"]) == [text, "x"]
    assert ANN.value({"goal": text, "n": [text]}) == {"goal": text, "n": [text]}


@pytest.mark.parametrize(
    "text",
    [
        "ann",
        "Hello ann.",
        "/people/ann?q=1",
        "a=ann&b=2",
        "%20ann%20",
        "<b>ann</b>",
        "ann's",
        '"x\\nann"',
        "(4711)",
        "OTTER7!",
        "Otter7%21",
    ],
)
def test_a_short_value_by_itself_is_replaced(text: str) -> None:
    assert "<secret:" in ANN.text(text), ANN.text(text)


@pytest.mark.parametrize("name", ["user", "username", "user_name", "login", "email", "shop.user", "user2"])
def test_a_long_user_name_is_a_whole_word_too(name: str) -> None:
    scrubber = Scrubber([Secret(name, "rosemary")])
    assert scrubber.text("rosemaryleaf and p.r.i.m.rosemaryland") == "rosemaryleaf and p.r.i.m.rosemaryland"
    assert scrubber.text("Rosemary wrote") == f"<secret:{name}> wrote"
    assert Scrubber([Secret("password", "rosemary")]).text("rosemaryleaf") == "<secret:password>leaf"


def test_a_short_value_of_letters_beyond_ascii_is_replaced_and_those_that_look_like_it_stay() -> None:
    scrubber = Scrubber([Secret("user", "jörg"), Secret("pin", "пять"), Secret("other", "jose")])
    assert scrubber.text("jörg, ПЯТЬ пять! José") == "<secret:user>, ПЯТЬ <secret:pin>! José"


def test_words_end_where_elements_end_and_a_split_value_is_found() -> None:
    assert ANN.texts(["Plan", "ann", "ual"]) == ["Plan", "<secret:user>", "ual"]
    assert ANN.texts(["its Ot", "ter7!", "now"]) == ["its <secret:word>", "", "now"]


def test_a_picture_whose_bytes_are_those_of_a_short_value_stays_whole() -> None:
    file = io.BytesIO()
    Image.new("RGB", (9, 9), "red").save(file, "PNG")
    data = file.getvalue()
    part = next(text for at in range(40, len(data) - 3) if (text := data[at : at + 3]).isascii())
    assert Scrubber([Secret("pin", part.decode())]).data(data) == data
    assert Scrubber([Secret("pin", "4711")]).data(b"\xff\x00 4711 \x00") == b"\xff\x00 **** \x00"


def test_a_short_password_within_other_text_is_held_back_from_other_origins() -> None:
    login = Login(Account(name="a", fields={"word": "Otter7!"}), {})
    assert login.held("q=xxOtter7!xx") == login.held(json.dumps({"q": "xxOtter7xx"})) == "<secret:word>"


def test_what_a_goal_states_of_user_names_and_presumed_secrets_is_none() -> None:
    assert Secret("user", "ann").is_stated_in("Show the posts of Ann.") and not Secret("user", "ann").is_stated_in("the annual plan")
    assert Secret("cookie order", "ORD12345678", presumed=True).is_stated_in("Cancel ORD12345678.")
    assert not Secret("password", "4711").is_stated_in("Log in with 4711.")
