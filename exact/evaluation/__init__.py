"""Benchmarks: many agents on many tasks at once, paired, at equal budgets, with statistics that can be trusted."""
