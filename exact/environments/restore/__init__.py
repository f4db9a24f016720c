"""Bring a simulated environment to a state by the cheapest faithful route, and verify that it arrived there."""

from exact.environments.restore.costs import Costs
from exact.environments.restore.routes import RouteName
from exact.environments.restore.slot import Slot, SlotContent
from exact.environments.restore.snapshots import SnapshotStore
from exact.environments.restore.waypoint import Arrival, ArrivalMatch, Divergence, Waypoint

__all__ = ["Arrival", "ArrivalMatch", "Costs", "Divergence", "RouteName", "Slot", "SlotContent", "SnapshotStore", "Waypoint"]
