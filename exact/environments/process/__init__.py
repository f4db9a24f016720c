"""Environments in separate processes: the host's side (worker, channel) and the guest's."""
