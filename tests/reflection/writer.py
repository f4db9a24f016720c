"""Adds reflections to a memory and prints the id of each one that is stored: `writer.py FILE NAME COUNT`."""

from __future__ import annotations

import sys

from exact.context import Reflection
from exact.reflection.memory import SQLiteMemory

path, name, count = sys.argv[1:]
with SQLiteMemory(path) as memory:
    for i in range(int(count)):
        memory.add(Reflection(id=f"{name}-{i}", kind="policy", text="t", instruction=f"task {name} {i}", state="", action="wait"))
        sys.stdout.write(f"{name}-{i}\n")
        sys.stdout.flush()
