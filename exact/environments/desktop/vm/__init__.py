"""The interface of OSWorld's machines, served by a desktop of exact: `desktop_env` sets tasks up and judges them through it."""
