if not __name__.startswith("exact."):
    raise ImportError("import exact.search: the folder 'search' at the root of the repository is only a link to it")
