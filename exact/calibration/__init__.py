"""How much a value function's word is worth: its judgements against outcomes."""
