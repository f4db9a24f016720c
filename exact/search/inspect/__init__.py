"""Readings of a finished or running search tree: statistics, health, differences, exports."""
