"""The committed path of an attempt as a moving picture: animated WebP, PNG or GIF."""

from __future__ import annotations

import io

from PIL import Image, ImageDraw, ImageFont, UnidentifiedImageError

from exact.errors import JournalError, UsageError
from exact.picture import open_picture
from exact.report.export.animation import Frame, path_frames
from exact.report.model.reading import Reading

FORMATS = {".webp": "WEBP", ".png": "PNG", ".apng": "PNG", ".gif": "GIF"}
"""Formats by the suffix of a file name."""
_MILLISECONDS = 1600
"""Time for which each state is shown; the last one is shown twice as long."""
_WIDTH = 960
"""Maximum width of the picture, in pixels."""
_BAND, _TEXT = 30, 15
"""Height of the caption and size of its letters, in pixels."""
_MARK = (214, 40, 40)


def moving_picture(reading: Reading, suffix: str = ".webp") -> bytes:
    """Return the screenshots of the committed path with the actions under them, and a frame around what is acted on.

    Raises UsageError for an unknown suffix, and where the attempt has no screenshots.
    """
    if suffix not in FORMATS:
        raise UsageError(f"no moving picture is named {suffix!r}: choose from {', '.join(FORMATS)}")
    frames = [image for frame in path_frames(reading) if (image := _drawn(frame, reading))]
    if not frames:
        raise UsageError("the attempt has no screenshots: run with browser.screenshots on")
    size = max(image.width for image in frames), max(image.height for image in frames)
    shown = [_padded(image, size) for image in frames]
    durations = [_MILLISECONDS] * (len(shown) - 1) + [2 * _MILLISECONDS]
    if len(shown) == 1:
        durations = durations[:1]
    output = io.BytesIO()
    options = {"quality": 80, "method": 3} if FORMATS[suffix] == "WEBP" else {}
    shown[0].save(output, FORMATS[suffix], save_all=True, append_images=shown[1:], duration=durations, loop=0, **options)
    return output.getvalue()


def _drawn(frame: Frame, reading: Reading) -> Image.Image | None:
    """Return a state with its caption; None where its screenshot is missing, with a warning."""
    if not frame.screenshot:
        return None
    try:
        with open_picture(reading.blobs.get(frame.screenshot)) as image:
            whole = image.convert("RGB")
    except (JournalError, UnidentifiedImageError, OSError) as error:
        reading.warnings.append(f"Screenshot {frame.screenshot[:12]} cannot be shown: {error}")
        return None
    draw = ImageDraw.Draw(whole)
    for box in frame.boxes:
        draw.rectangle((box.x - 2, box.y - 2, box.x + box.width + 2, box.y + box.height + 2), outline=_MARK, width=3)
    if whole.width > _WIDTH:
        whole = whole.resize((_WIDTH, round(whole.height * _WIDTH / whole.width)), Image.Resampling.LANCZOS)
    canvas = Image.new("RGB", (whole.width, whole.height + _BAND), "white")
    canvas.paste(whole)
    ImageDraw.Draw(canvas).text((8, whole.height + 6), frame.caption, fill="black", font=ImageFont.load_default(_TEXT))
    return canvas


def _padded(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    if image.size == size:
        return image
    canvas = Image.new("RGB", size, "white")
    canvas.paste(image)
    return canvas
