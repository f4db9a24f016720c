"""How the built-in agent reads a page: matching, evidence, superlatives, dates."""
