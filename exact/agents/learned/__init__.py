"""The learned agent: a small model over the lexical agent's elements and actions, trained by its own searches."""
