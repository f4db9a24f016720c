import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Picture

from exact.models.tokens import count, picture, rough, size


@pytest.mark.parametrize(
    ("model", "pixels", "tokens"),
    [
        ("gpt-4o", (512, 512), 255), ("gpt-4o", (1280, 720), 85 + 170 * 6), ("gpt-4o", (2048, 4096), 85 + 170 * 6),
        ("gpt-4o", (1, 1), 255), ("claude-sonnet-5-5", (750, 100), 100), ("gemini-3.8-flash", (384, 384), 258),
        ("gemini-3.8-flash", (1536, 768), 516), ("Qwen/Qwen3-VL-8B-Instruct", (280, 280), 100), ("unknown", (512, 512), 255),
        ("gpt-4o", (0, 0), 0),
    ],
)  # fmt: skip
def test_a_picture_has_the_price_that_the_provider_states(model, pixels, tokens):
    assert picture(*pixels, model) == tokens


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("hello world", 2), ("1234567", 3), ("价格很高", 4), ("a\nb", 3), ("!!", 1)])
def test_the_rough_count_follows_its_rule(text, tokens):
    assert rough(text) == tokens


@given(st.text(), st.text())
def test_a_text_has_no_fewer_tokens_than_its_parts_minus_where_they_meet(a, b):
    assert 0 <= rough(a + "\n" + b) <= rough(a) + rough(b) + 1


def test_without_a_vocabulary_the_count_is_the_rough_one():
    assert count("some words here", "gpt-4o") == rough("some words here")


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_the_size_of_a_picture_is_read_from_its_header(kind):
    buffer = io.BytesIO()
    Picture.new("RGB", (33, 21)).save(buffer, kind)
    assert size(buffer.getvalue()) == (33, 21)


@given(st.binary(max_size=60))
def test_any_bytes_have_a_size(data):
    for start in (b"", b"\xff\xd8", b"\x89PNG\r\n\x1a\n"):
        width, height = size(start + data)
        assert width >= 0 and height >= 0
