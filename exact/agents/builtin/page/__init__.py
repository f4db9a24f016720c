"""Reading of pages by the built-in agent: matching, evidence, superlatives, dates."""
