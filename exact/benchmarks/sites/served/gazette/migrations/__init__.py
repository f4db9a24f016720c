"""The migrations of the newspaper."""
