"""The front door for code that imports exact: solve a task, search an environment, open an environment or a finished run."""
