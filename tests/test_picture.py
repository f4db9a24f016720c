"""Pictures of strangers."""

import io
import struct
import zlib

import pytest
from PIL import Image

from exact.untrusted import open_picture


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, *extra: bytes) -> bytes:
    """Return a PNG that says its size and holds the beginning of its pixels."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(extra) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")


TEXT_BOMB = chunk(b"zTXt", b"k\0\0" + zlib.compress(b"x" * (20 << 20), 9))
HOSTILE = {
    "a bomb": png(60_000, 60_000),
    "a bomb below Pillow's own limit": png(9_000, 9_000),
    "no pixels": png(0, 0),
    "too few pixels": png(100, 100),
    "compressed text": png(10, 10, TEXT_BOMB),
    "torn": png(10, 10)[:40],
    "a script": b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
    "a program in PostScript": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\nshowpage\n",
    "TIFF": b"II*\0\x08\0\0\0" + b"\xff" * 200,
    "nothing": b"",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_is_no_picture_of_a_screen_is_one_kind_of_error(data: bytes) -> None:
    with pytest.raises(OSError) as raised:
        open_picture(data)
    assert "\n" not in str(raised.value)


def test_of_an_animation_the_first_frame_is_read() -> None:
    frames, file = [Image.new("P", (8, 8), number) for number in range(20)], io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    assert open_picture(file.getvalue()).convert("RGB").size == (8, 8)
