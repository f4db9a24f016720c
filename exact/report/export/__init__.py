"""Exports of a report: DOT graphs, Playwright scripts, animations."""
