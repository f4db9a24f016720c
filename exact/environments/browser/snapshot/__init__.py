"""Snapshots of a page's own state: storage, databases, form values, scroll positions."""
