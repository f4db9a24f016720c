"""Sites that run here: Trac and Wagtail, with 30 tasks each."""

from exact.benchmarks.sites.suite import SiteSuite, trac, wagtail

__all__ = ["SiteSuite", "trac", "wagtail"]
