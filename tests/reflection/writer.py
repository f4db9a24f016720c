"""Adds reflections to a memory and prints the id of each one that is stored: `writer.py WHERE NAME START END`."""

from __future__ import annotations

import hashlib
import sys

from exact.context import Reflection
from exact.reflection.memory.open import open_memory

where, name, start, end = sys.argv[1:]
with open_memory(where) as memory:
    for i in range(int(start), int(end)):
        said = hashlib.sha256(f"{name} {i}".encode()).hexdigest().translate(str.maketrans("0123456789", "ghijklmnop"))
        words = " ".join(said[at : at + 8] for at in range(0, 64, 8))
        text = f"When a list is shown, read {words}."
        memory.add(Reflection(id=f"{name}-{i}", kind="policy", text=text, instruction=words, state="", action="wait"))
        sys.stdout.write(f"{name}-{i}\n")
        sys.stdout.flush()
