"""The number of threads that compute the products of matrices."""

from __future__ import annotations

from contextlib import AbstractContextManager

from exact.errors import UsageError


def one_thread() -> AbstractContextManager[object]:
    """Compute products by one thread. On several, sums are rounded otherwise, and products as small as the model's take longer.

    Raises UsageError where threadpoolctl is not installed.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError as error:
        raise UsageError("threadpoolctl is not installed: run `pip install 'exact-agent[miniwob]'`") from error
    limits: AbstractContextManager[object] = threadpool_limits(1)
    return limits
