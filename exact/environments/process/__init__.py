"""Environments in processes of their own: the host's side (worker, channel) and the guest's."""
