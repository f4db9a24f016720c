"""The journal of an attempt: events, the file, the state folded from it."""
