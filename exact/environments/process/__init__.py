"""Environments in a process of their own: worker, guest, channel."""
