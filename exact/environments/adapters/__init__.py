"""Environments of other packages, adapted to the contract of exact."""
