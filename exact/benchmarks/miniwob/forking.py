"""MiniWoB++ in environments that fork: its pages are served inside the sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from exact.benchmarks.miniwob.pages import Rewrite, unchanged
from exact.benchmarks.miniwob.suite import page_setup, verdict
from exact.config import BrowserConfig
from exact.environments.browser.fork.factory import ForkingFactory, forking
from exact.environments.sandbox import Service, interpreter, static
from exact.scratch import scratch

_PORT = 8000
"""On the sandbox's own loopback, where nobody else is."""


@asynccontextmanager
async def forking_factory(config: BrowserConfig, pages: Path, rewrite: Rewrite) -> AsyncIterator[ForkingFactory]:
    """Environments of the pages in a folder as `rewrite` has them. Raises EnvironmentFailure where environments cannot fork."""
    with _rewritten(pages, rewrite) as folder:
        setup = page_setup(f"127.0.0.1:{_PORT}")
        async with forking(
            config, setup, services=[_service(str(folder))], evaluator=verdict, limit=config.snapshots << 20
        ) as environments:
            yield environments


def _service(folder: str) -> Service:
    return Service(
        command=(str(interpreter()), "-I", "-S", static.__file__, str(_PORT), folder),
        ready_url=f"http://127.0.0.1:{_PORT}/",
        reads=(static.__file__, folder),
        stateless=True,
    )


@contextmanager
def _rewritten(pages: Path, rewrite: Rewrite) -> Iterator[Path]:
    """A folder with what is served: a Rewrite cannot be taken into a sandbox."""
    if rewrite is unchanged:
        yield pages
        return
    with scratch("miniwob") as made:
        for file in pages.rglob("*"):
            if file.is_file():
                path = file.relative_to(pages)
                copy = made / path
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(rewrite(path.as_posix(), file.read_bytes()))
        yield made
