"""Known secrets: their written forms, their places in texts, and their removal from all stored data."""
