"""Sandboxes that can be checkpointed and restored: gVisor, without image, daemon or root."""
