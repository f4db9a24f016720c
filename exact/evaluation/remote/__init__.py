"""Attempts on other machines, by Ray: what is sent there, what comes back while they run, and the engine that does both."""
