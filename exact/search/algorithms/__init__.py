"""The search algorithms besides MCTS, behind the same ask/tell interface."""
