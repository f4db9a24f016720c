"""An OpenEnv server over any environment of this package: `exact serve`.

It needs `openenv`, in a virtual environment of its own: `shells/setup.sh --openenv`, or the extra `openenv`.
"""
