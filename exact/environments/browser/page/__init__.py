"""One page and its CDP session: identifiers, traffic, timeouts, dialogs, downloads."""
