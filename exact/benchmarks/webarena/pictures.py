"""The rules of page_image_query: pictures of a page against questions and other pictures.

Structural similarity of two pictures (Wang et al. 2004, equation 13), with uniform windows of 7 pixels on grey values.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import http.client
import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from exact.benchmarks.webarena.locate import in_page
from exact.errors import EnvironmentFailure, UsageError
from exact.origins import fetch
from exact.untrusted import open_picture, read_bounded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image
    from playwright.async_api import Page

    Plane = NDArray[np.float64]


_SECONDS = 60.0
"""Seconds that a server has to send a picture."""
_SERVER_ERROR = 500
_MOST = 64 << 20
_CHOSEN = """
selector => [...document.querySelectorAll(selector)].flatMap(each => each.tagName === 'IMG' ? [each] : [...each.querySelectorAll('img')])
  .map(each => each.getAttribute('src'))
"""
_FETCH = """
async ([url, milliseconds]) => {
  const answer = await fetch(url, {signal: AbortSignal.timeout(milliseconds)}).catch(() => null);
  const blob = await answer?.blob().catch(() => null);
  if (!blob) return null;
  return [answer.status, await new Promise(done => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.split(',')[1] ?? '');
    reader.readAsDataURL(blob);
  })];
}
"""


def check(selector: str) -> None:
    """Raise UsageError for a selector that task files do not use."""
    if selector.strip() and not selector.strip().startswith("."):
        raise UsageError(f"unknown eval_image_class {selector!r}: write a CSS selector that begins with a dot, or nothing for all pictures")


async def on_page(page: Page, selector: str) -> list[Image]:
    """Return the readable pictures of a page in document order: those below a selector, else all that are visible and not decorative.

    Raises EnvironmentFailure if the page's own site does not answer for one.
    """
    if selector.strip():
        sources = await in_page(page, _CHOSEN, selector.strip()) or []
    else:
        sources = await page.get_by_role("img").evaluate_all("all => all.map(each => each.getAttribute('src'))")
    found = [await _seen(page, urljoin(page.url, source)) for source in sources if source]
    return [each for each in found if each is not None]


async def _seen(page: Page, url: str) -> Image | None:
    """Return one picture as the page gets it: with its cookies, and in an environment that the host cannot reach.

    None if it is broken on the page itself: no visitor sees it there.
    """
    answer = await in_page(page, _FETCH, [url, 1000 * _SECONDS])
    try:
        if answer is None:  # the page may not ask for it by script, or no server answers
            return await reference(url)
        status, data = answer
        if status < _SERVER_ERROR:
            return _decoded(base64.b64decode(data))
        why = f"the server says {status}"
    except (EnvironmentFailure, binascii.Error) as error:
        if answer is not None:
            return None
        why = str(error)
    if urlsplit(url)[:2] != urlsplit(page.url)[:2]:
        return None
    raise EnvironmentFailure(f"a picture of the page cannot be looked at for the verdict: {url}: {why}")


async def reference(where: str) -> Image:
    """Return the picture at an address, or in a file. Raises EnvironmentFailure."""
    try:
        return _decoded(await asyncio.to_thread(_read, where))
    except (OSError, http.client.HTTPException) as error:
        raise EnvironmentFailure(f"the picture {where} cannot be had ({error}): is its site up?") from error


def _read(where: str) -> bytes:
    if not where.startswith(("http://", "https://")):
        return read_bounded(Path(where), _MOST)
    return fetch(where, headers={"User-Agent": "exact"}, seconds=_SECONDS, most=_MOST)


def _decoded(data: bytes) -> Image:
    try:
        return open_picture(data)
    except OSError as error:
        raise EnvironmentFailure(f"a picture does not read: {error}: is it SVG?") from error


def png(picture: Image) -> bytes:
    """Return a picture as a model gets it."""
    buffer = io.BytesIO()
    picture.convert("RGB").save(buffer, "PNG")
    return buffer.getvalue()


def alike(pictures: Sequence[Any], references: Sequence[Any], threshold: float) -> float | None:
    """Return the best similarity above the threshold; None if none is."""
    best = max((similarity(one, other) for one in pictures for other in references), default=-1.0)
    return best if best > threshold else None


_WINDOW = 7
_C1, _C2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2


def similarity(one: Image, other: Image) -> float:
    """Return the similarity in [-1, 1]; 1 for equal pictures. Both are resized to the larger width and height first."""
    import numpy as np
    from PIL import Image as Pictures

    size = max(one.width, other.width, _WINDOW), max(one.height, other.height, _WINDOW)
    grey = [np.asarray(each.resize(size, Pictures.Resampling.LANCZOS).convert("L"), dtype=np.float64) for each in (one, other)]
    return _mean_ssim(grey[0], grey[1])


def _mean_ssim(x: Plane, y: Plane) -> float:
    """Return the mean over all windows in the picture; variances with n - 1."""
    mean_x, mean_y = _means(x), _means(y)
    sample = _WINDOW**2 / (_WINDOW**2 - 1)
    var_x, var_y = sample * (_means(x * x) - mean_x**2), sample * (_means(y * y) - mean_y**2)
    cov = sample * (_means(x * y) - mean_x * mean_y)
    above = (2 * mean_x * mean_y + _C1) * (2 * cov + _C2)
    below = (mean_x**2 + mean_y**2 + _C1) * (var_x + var_y + _C2)
    return float((above / below).mean())


def _means(plane: Plane) -> Plane:
    """Return the mean of each window, from sums over rectangles."""
    import numpy as np

    total = np.pad(plane.cumsum(0).cumsum(1), ((1, 0), (1, 0)))
    w = _WINDOW
    windows: Plane = total[w:, w:] - total[:-w, w:] - total[w:, :-w] + total[:-w, :-w]
    return windows / w**2
