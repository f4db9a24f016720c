"""A pool of environments: leases and capacity."""
