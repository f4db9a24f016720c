if not __name__.startswith("exact."):
    raise ImportError("import exact.reflection: the folder 'reflection' at the root of the repository is only a link to it")
