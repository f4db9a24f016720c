"""Reading a finished tree: statistics, health, differences, exports."""
