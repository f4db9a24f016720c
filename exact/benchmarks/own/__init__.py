"""The user's own tasks: a list of tasks, or a site file and a task file, with their evaluators."""
