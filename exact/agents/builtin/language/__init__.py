"""How the built-in agent reads an instruction: clauses, parts, fills, questions."""
