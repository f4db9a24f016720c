"""Reports of searches, as HTML pages that open offline."""

from exact.report.build import build_index, build_report, build_suite

__all__ = ["build_index", "build_report", "build_suite"]
