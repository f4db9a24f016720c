"""An OpenEnv server over any environment of this package: `exact serve`.

It needs `openenv`, in a separate virtual environment: `shells/setup.sh --openenv`, or the extra `openenv`.
"""
