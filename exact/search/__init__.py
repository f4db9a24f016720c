"""Tree search: algorithms that ask for work and are told its results."""

if not __name__.startswith("exact."):
    raise ImportError("import exact.search: the folder 'search' at the root of the repository is only a link to it")
