"""The report's model: the contents of a journal as data for the page."""
