"""What an agent sees of a page: DOM capture, accessibility tree, masks, descriptions."""
