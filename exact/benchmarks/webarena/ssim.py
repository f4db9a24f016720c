"""Structural similarity of two pictures (Wang et al. 2004, equation 13), with uniform windows of 7 pixels on grey values."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    Plane = NDArray[np.float64]

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
