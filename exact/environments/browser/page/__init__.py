"""A page of a browser: its CDP session, tab, traffic, dialogs, downloads, clipboard and clock."""
