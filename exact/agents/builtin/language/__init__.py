"""Parsing of instructions by the built-in agent: clauses, subgoals, text to fill in, questions."""
