"""An HTTP server for one test, which ends at once."""

from __future__ import annotations

from pytest_httpserver import HTTPServer

POLL = 0.02
"""Seconds between two looks for its end. With the default, 0.5, a test waits that long for its server."""


class BriefServer(HTTPServer):
    """A server of pytest_httpserver that looks for its end more often."""

    def thread_target(self) -> None:
        assert self.server is not None
        self.server.serve_forever(POLL)
