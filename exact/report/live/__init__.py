"""The live view: a report that follows a running search and takes commands."""
