"""The kernels by which numpy's OpenBLAS computes products of matrices. Sums are rounded otherwise by others, and by several threads.

The fonts in which a browser draws pages. Line breaks, and so the results of a training, depend on them.
"""

from __future__ import annotations

import asyncio
import os
import platform
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from exact.config import BrowserConfig
from exact.errors import EnvironmentFailure, UsageError

if TYPE_CHECKING:
    from exact.environments.browser.launch.browser import Browser

VARIABLE, COMMON = "OPENBLAS_CORETYPE", "Haswell"
"""Environment variable that names the kernels, and those that all x86 processors of the last ten years can run."""


def use_common_kernels() -> None:
    """Have OpenBLAS use kernels that most machines share, in this process and in those that it starts.

    This has no effect if numpy is already loaded, if the processor cannot run them, or if OPENBLAS_CORETYPE names others.
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
    """Return the name of the kernels that this process uses; `unknown` if its library does not tell.

    Raises UsageError if threadpoolctl is not installed.
    """
    import_module("numpy")  # it loads the library
    found = [str(each.get("architecture", "")) for each in _threadpoolctl().threadpool_info() if each.get("user_api") == "blas"]
    return next((name for name in found if name), "unknown")


def one_thread() -> AbstractContextManager[object]:
    """Compute products by one thread. On several, sums are rounded otherwise, and products as small as the model's take longer.

    Raises UsageError if threadpoolctl is not installed.
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


FAMILIES = ("Arial", "serif", "monospace", "system-ui")
"""Font families that the pages of MiniWoB++ ask for; their fields and buttons have the last one."""
_SECONDS = 30.0
"""Time in which the browser must tell its fonts."""


async def drawn_fonts() -> dict[str, str]:
    """Return the name of the font in which this machine's browser draws each of the families.

    Raises EnvironmentFailure if the browser is missing or does not answer.
    """
    from playwright.async_api import Error

    from exact.environments.browser.launch.launch import launch  # it loads numpy, before which the kernels are chosen

    config = BrowserConfig(screenshots=False)
    async with launch(config) as browser:
        try:
            async with asyncio.timeout(_SECONDS):
                return await _fonts(browser, config)
        except (Error, TimeoutError) as error:
            reason = error.message.splitlines()[0] if isinstance(error, Error) else f"no answer within {_SECONDS:g} s"
            raise EnvironmentFailure(f"the browser does not tell its fonts: {reason}") from error


def drawn_fonts_now() -> dict[str, str]:
    """Return the result of `drawn_fonts` to code that is not async, even if a loop runs in this thread, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(drawn_fonts())
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: asyncio.run(drawn_fonts())).result()


async def _fonts(browser: Browser, config: BrowserConfig) -> dict[str, str]:
    context, page = await browser.open_context(config, ())
    try:
        await page.set_content("".join(f"<p style='font-family: {family}'>a</p>" for family in FAMILIES))
        cdp = await browser.attach(page)
        await cdp.send("DOM.enable")
        await cdp.send("CSS.enable")
        root = (await cdp.send("DOM.getDocument"))["root"]["nodeId"]
        nodes = (await cdp.send("DOM.querySelectorAll", {"nodeId": root, "selector": "p"}))["nodeIds"]
        drawn = [(await cdp.send("CSS.getPlatformFontsForNode", {"nodeId": node}))["fonts"] for node in nodes]
        return {family: str(fonts[0]["familyName"]) if fonts else "" for family, fonts in zip(FAMILIES, drawn, strict=True)}
    finally:
        await browser.close_context(context)


def told(fonts: Mapping[str, str]) -> str:
    """Return fonts as one line."""
    return ", ".join(f"{family} in {font}" for family, font in fonts.items())
