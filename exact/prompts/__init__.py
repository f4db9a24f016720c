if not __name__.startswith("exact."):
    raise ImportError("import exact.prompts: the folder 'prompts' at the root of the repository is only a link to it")
