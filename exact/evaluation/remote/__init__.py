"""Attempts on other machines, by Ray: the data sent there, the data that comes back while they run, and the engine that does both."""
