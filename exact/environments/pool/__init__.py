"""A pool of environments: leases, slots and usage."""
