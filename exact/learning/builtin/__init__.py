"""Training of the learned built-in agent by expert iteration: explore with rewards, fit, explore again. See `exact train builtin`."""
