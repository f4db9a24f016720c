"""The kernels by which numpy's OpenBLAS computes products of matrices. Sums are rounded otherwise by others, and by several threads."""

from __future__ import annotations

import os
import platform
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from types import ModuleType

from exact.errors import UsageError

VARIABLE, COMMON = "OPENBLAS_CORETYPE", "Haswell"
"""Environment variable that names the kernels, and those that all x86 processors of the last ten years can run."""


def use_common_kernels() -> None:
    """Have OpenBLAS use kernels that most machines share, in this process and in those that it starts.

    Without effect where numpy is loaded already, where the processor cannot run them, and where OPENBLAS_CORETYPE names others.
    """
    if _runs_common(platform.machine(), Path("/proc/cpuinfo")):
        os.environ.setdefault(VARIABLE, COMMON)


def _runs_common(machine: str, processor: Path) -> bool:
    """Return whether Linux says that the processor can run the common kernels."""
    if machine.lower() not in ("x86_64", "amd64"):
        return False
    try:
        flags = next((line for line in processor.read_text().splitlines() if line.startswith("flags")), "").split()
    except OSError:
        return False
    return {"avx2", "fma"} <= set(flags)


def used_kernels() -> str:
    """Return the name of the kernels that this process uses; `unknown` where its library does not tell.

    Raises UsageError where threadpoolctl is not installed.
    """
    import_module("numpy")  # it loads the library
    found = [str(each.get("architecture", "")) for each in _threadpoolctl().threadpool_info() if each.get("user_api") == "blas"]
    return next((name for name in found if name), "unknown")


def one_thread() -> AbstractContextManager[object]:
    """Compute products by one thread. On several, sums are rounded otherwise, and products as small as the model's take longer.

    Raises UsageError where threadpoolctl is not installed.
    """
    limits: AbstractContextManager[object] = _threadpoolctl().threadpool_limits(1)
    return limits


def _threadpoolctl() -> ModuleType:
    try:
        import threadpoolctl
    except ImportError as error:
        raise UsageError("threadpoolctl is not installed: run `pip install 'exact-agent[miniwob]'`") from error
    module: ModuleType = threadpoolctl
    return module
