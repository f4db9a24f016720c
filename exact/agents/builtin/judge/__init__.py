"""How the built-in agent judges a state: clicks, typing, keys, answers, progress."""
