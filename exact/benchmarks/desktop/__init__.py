"""Five tasks on a desktop with a text editor and a calculator."""

from exact.benchmarks.desktop.suite import DesktopSuite

__all__ = ["DesktopSuite"]
