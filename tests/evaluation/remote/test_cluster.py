"""A connection to a cluster, with a stand-in for Ray that answers like a busy head."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from exact.errors import UsageError
from exact.evaluation.remote import cluster


class Ray(SimpleNamespace):
    """Ray, whose connections fail with the errors given, in turn."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__()
        self.errors, self.asked, self.ended = list(errors), 0, 0

    def is_initialized(self) -> bool:
        return False

    def init(self, **options: Any) -> None:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)

    def shutdown(self) -> None:
        self.ended += 1


BUSY = ConnectionAbortedError("Initialization failure from server:\nTraceback ...")


def test_a_busy_head_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ray = Ray(BUSY, BUSY)
    monkeypatch.setattr(cluster, "ray_module", lambda: ray)
    with cluster.connected("ray://head:10001", {}) as found:
        assert found is ray
    assert (ray.asked, ray.ended) == (3, 3)


@pytest.mark.parametrize(("errors", "asked"), [((ConnectionError("nobody"),), 1), ((BUSY, BUSY, BUSY), 3)])
def test_a_cluster_that_is_not_reached_is_told_in_one_line(
    errors: tuple[Exception, ...], asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = Ray(*errors)
    monkeypatch.setattr(cluster, "ray_module", lambda: ray)
    with pytest.raises(UsageError, match="no cluster at ray://head:10001") as told, cluster.connected("ray://head:10001", {}):
        pass
    assert ray.asked == asked and "\n" not in str(told.value)
