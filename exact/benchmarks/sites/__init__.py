"""Sites that run here: Trac and Wagtail, with 30 tasks each."""

from exact.benchmarks.sites.suite import Site, trac, wagtail

__all__ = ["Site", "trac", "wagtail"]
