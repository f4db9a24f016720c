"""Benchmark runs: several agents on the same tasks and seeds, at equal budgets, with paired statistics."""
