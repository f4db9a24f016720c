"""Toy environments with known values: the real contracts without a browser, faults on demand."""
