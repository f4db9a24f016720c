"""Sites outside the sandbox: access, accounts, hooks and retained states."""
