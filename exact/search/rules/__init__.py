"""The rules of a search: selection, backup, stopping, final choice."""
