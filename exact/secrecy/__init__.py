"""Secrets that are known: how they are written, where they stand, and their removal from all that is stored."""

from exact.secrecy.scrubber import NOTHING, Found, Scrubber
from exact.secrecy.values import Secret, placeholder

__all__ = ["NOTHING", "Found", "Scrubber", "Secret", "placeholder"]
