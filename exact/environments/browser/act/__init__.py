"""The actions of a browser: their grammar, and a handler for each verb."""
