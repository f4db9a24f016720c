"""Known secrets: their written forms, their places in texts, and their removal from all stored data."""

from exact.secrecy.scrubber import NOTHING, Found, Scrubber
from exact.secrecy.values import Secret, placeholder

__all__ = ["NOTHING", "Found", "Scrubber", "Secret", "placeholder"]
