"""Environments that other packages define, behind the contract of exact."""
