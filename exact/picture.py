"""Pictures that strangers give: in a task, a run folder, an export, or from a server."""

from __future__ import annotations

import base64
import io
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

MOST_PIXELS = 40_000_000
"""Pixels of the largest picture that is opened."""
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
"""Formats that are read. Pillow knows others, such as EPS, which it gives to another program."""


def open_picture(data: bytes) -> Image:
    """Return a picture, decoded; of an animation the first frame.

    Raises UnidentifiedImageError, which is an OSError, for what is no picture of the usual formats, is damaged, or has more pixels than any
    screen has.
    """
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            image = Image.open(io.BytesIO(data), formats=_FORMATS)
            if image.width * image.height > MOST_PIXELS:
                raise UnidentifiedImageError(f"it has {image.width} by {image.height} pixels, too many for a screenshot")
            image.load()
    except UnidentifiedImageError:
        raise
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise UnidentifiedImageError("it has too many pixels") from error
    except Exception as error:  # a decoder of pictures may raise anything for a hostile one
        raise UnidentifiedImageError(f"it cannot be decoded: {' '.join(str(error).split()) or type(error).__name__}") from error
    return image


def pixels_of(picture: bytes) -> list[list[list[int]]]:
    """Return the rows of a picture's pixels, each as red, green and blue. Raises UnidentifiedImageError."""
    import numpy as np

    rows: list[list[list[int]]] = np.asarray(open_picture(picture).convert("RGB")).tolist()
    return rows


def picture_of(given: object) -> Image:
    """Return a picture that a server gave: in base64, or as rows of pixels. Raises UnidentifiedImageError."""
    import numpy as np
    from PIL import Image, UnidentifiedImageError

    try:
        if isinstance(given, list):
            return Image.fromarray(np.asarray(given, dtype=np.uint8)).convert("RGB")
        return open_picture(base64.b64decode(given, validate=True))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError, KeyError) as error:
        raise UnidentifiedImageError("it is neither a picture in base64 nor rows of pixels") from error
