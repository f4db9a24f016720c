"""Evaluation of states and actions by the built-in agent: clicks, typing, keys, answers, progress."""
