"""Memories of reflections."""
