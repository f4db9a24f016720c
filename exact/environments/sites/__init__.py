"""Sites outside the sandbox: access, accounts, hooks and saved states."""
