"""Bring a simulated environment to a state by the cheapest faithful route, and verify that it arrived there."""
