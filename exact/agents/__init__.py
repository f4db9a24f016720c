if not __name__.startswith("exact."):
    raise ImportError("import exact.agents: the folder 'agents' at the root of the repository is only a link to it")
