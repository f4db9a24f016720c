"""The agent's view of a page: DOM capture, accessibility tree, masks, descriptions."""
