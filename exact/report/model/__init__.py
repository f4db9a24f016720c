"""The report's model: what a journal says, as data for the page."""
