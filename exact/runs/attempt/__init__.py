"""One attempt at a task: ask, execute, tell, commit, score."""
