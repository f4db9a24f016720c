"""Training of the learned agent by expert iteration: explore with rewards, fit, explore again. See `exact train builtin`."""
