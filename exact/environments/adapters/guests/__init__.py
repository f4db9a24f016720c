"""The guest's side of environments that others wrote.

Each file is loaded by path, by the interpreter of another virtual environment, Python 3.9 or newer: it imports nothing of exact but
`guest_parts`, which lies beside it.
"""
