"""Bring a speculative environment to a state by the cheapest faithful route, and check that it is that state."""

from exact.environments.restore.costs import Costs
from exact.environments.restore.routes import RouteName
from exact.environments.restore.slot import Place, Standing
from exact.environments.restore.snapshots import Shelf
from exact.environments.restore.waypoint import Arrival, Divergence, Verdict, Waypoint

__all__ = ["Arrival", "Costs", "Divergence", "Place", "RouteName", "Shelf", "Standing", "Verdict", "Waypoint"]
