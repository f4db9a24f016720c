"""Arrays of numbers in npz files, read within bounds: no pickles, and the expected names, types and shapes only."""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

UNREADABLE = (OSError, ValueError, LookupError, EOFError, MemoryError, OverflowError, RecursionError, zipfile.BadZipFile, zlib.error)
"""What reading an npz file raises, a hostile one too."""
Shape = tuple[int | None, ...]
"""Lengths of an array's axes; None: any."""


def read_arrays(data: bytes, names: Collection[str], most: int) -> Mapping[str, NDArray[Any]]:
    """Return the arrays of an npz file of at most `most` bytes unpacked. Raises one of UNREADABLE where it holds other names."""
    import numpy as np

    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise ValueError("it is no npz file")
    with zipfile.ZipFile(io.BytesIO(data)) as held:  # numpy reads an array before its shape is known
        if sum(each.file_size for each in held.infolist()) > most:
            raise ValueError(f"its arrays have more than {most:,} bytes")
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        if set(held.files) != set(names):
            raise ValueError(f"it holds {', '.join(sorted(held.files))[:80]}")
        return {name: held[name] for name in names}


def numbers(found: NDArray[Any], kind: type[Any], shape: Shape | None = None) -> NDArray[Any]:
    """Return an array. Raises ValueError where its type or shape is not the expected one, or a number is not finite."""
    import numpy as np

    fits = shape is None or (found.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, found.shape, strict=True)))
    if found.dtype != kind or not fits or not np.isfinite(found).all():
        raise ValueError(f"an array of {found.dtype} {found.shape}, expected finite {np.dtype(kind)} {shape or ''}")
    return found
