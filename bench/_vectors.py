"""FAISS or LanceDB over given vectors, in a separate process. Runs in their virtual environments; imports nothing of exact.

Arguments: `faiss` or `lancedb`, and a folder with vectors.npy (float32, of length 1), kinds.npy and tasks.npy (int64), queries.npy. Each
line of stdin: number of the query, kind, task to leave out, how many. For each a line on stdout: `{"seconds": s, "rows": [...]}`. Both
search exactly; FAISS is given the rows that the filter admits as a bitmap, LanceDB the filter as SQL, applied before the search.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Search = Callable[[Any, int, int, int], list[int]]


def with_faiss(vectors: Any, kinds: Any, tasks: Any) -> Search:
    import faiss

    index = faiss.IndexFlatIP(vectors.shape[1])
    index.add(vectors)

    def search(query: Any, kind: int, task: int, k: int) -> list[int]:
        admitted = np.packbits((kinds == kind) & (tasks != task), bitorder="little")
        selector = faiss.IDSelectorBitmap(admitted)
        _, rows = index.search(query[None], k, params=faiss.SearchParameters(sel=selector))
        return [int(row) for row in rows[0] if row >= 0]

    return search


def with_lancedb(vectors: Any, kinds: Any, tasks: Any, folder: Path) -> Search:
    os.environ["RUST_LOG"] = "error"
    import lancedb
    import pyarrow as pa

    values = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
    table = pa.table({"row": np.arange(len(vectors)), "kind": kinds, "task": tasks, "vector": values})
    made = lancedb.connect(folder / "lance").create_table("lessons", table, mode="overwrite")

    def search(query: Any, kind: int, task: int, k: int) -> list[int]:
        asked = (
            made.search(query).distance_type("dot").where(f"kind = {kind} AND task != {task}", prefilter=True).select(["row", "_distance"])
        )
        return [int(row) for row in asked.limit(k).to_arrow()["row"].to_pylist()]

    return search


def main() -> None:
    folder = Path(sys.argv[2])
    vectors, kinds, tasks, queries = (np.load(folder / f"{name}.npy") for name in ("vectors", "kinds", "tasks", "queries"))
    search = with_faiss(vectors, kinds, tasks) if sys.argv[1] == "faiss" else with_lancedb(vectors, kinds, tasks, folder)
    for line in sys.stdin:
        number, kind, task, k = map(int, line.split())
        start = time.perf_counter()
        rows = search(queries[number], kind, task, k)
        print(json.dumps({"seconds": time.perf_counter() - start, "rows": rows}), flush=True)


if __name__ == "__main__":
    main()
