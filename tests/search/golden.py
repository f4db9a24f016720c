"""The golden tree: a search whose whole result is stored with the configuration that made it.

After a wanted change of the algorithm: `python -m tests.search.golden` writes it anew; look at the difference before you keep it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from exact.config import SearchConfig
from exact.environments.toy.known import form
from exact.search.inspect.export import to_json
from exact.search.registry import algorithm
from tests.search.harness import Harness

FILE = Path(__file__).parents[1] / "golden" / "mcts_form.json"
SEARCH = SearchConfig(algorithm="mcts", iterations=24, k=4, c=0.5, depth=6)


def golden() -> bytes:
    """Two commits in a form of three boxes."""
    run = Harness(form(3, seed=0), algorithm(SEARCH))
    committed = []
    for _ in range(2):
        run.search()
        committed.append(run.commit())
    search = {name: value for name, value in msgspec.structs.asdict(SEARCH).items() if value != getattr(SearchConfig(), name)}
    made = {"environment": "form(3, seed=0)", "search": search, "committed": committed, "tree": msgspec.json.decode(to_json(run.tree))}
    return msgspec.json.format(msgspec.json.encode(made)) + b"\n"


if __name__ == "__main__":
    FILE.write_bytes(golden())
