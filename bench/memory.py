"""Measure the time to write and to retrieve a reflection in memories of 1,000, 10,000 and 100,000.

The situations are real pages (bench/states.jsonl.gz) with random words in the instruction; half of the reflections are for the policy and
half for the value function. `retrieve` is the whole wait of a run: embedding, search, filters (kind, excluded task, confidence, threshold)
and ranking by words. `search` is the search alone, beside FAISS and LanceDB with the same vectors and filters, each in its own virtual
environment. All three search exactly; `agree` is the share of queries for which the peer names a reflection as near as the nearest. All
are warm: 20 new questions to each in turn. `cold` is `retrieve` with 10 ms of other work between two questions, as in a run. Only
measurements beside which a probe found the machine quiet count (`retrieve_ms_all`: all of them). `add` writes one reflection, which is on
the disk when it returns. Another process fills the memory, because neither a run that retrieves nor the peers have just written 10,000
reflections.

    python bench/memory.py --json bench/results/memory.json
    python bench/memory.py --quick                                  the larger two filled with copies of 4,000, and few queries
"""

from __future__ import annotations

import gzip
import itertools
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import _common
import msgspec
import numpy as np
from _peers import Peer, make_venv, peer

from exact.context import Context, Reflection
from exact.reflection import embed
from exact.reflection.embed import HashedEmbedding
from exact.reflection.memory.index import Hit
from exact.reflection.memory.open import SQLiteMemory

SIZES = (1_000, 10_000, 100_000)
PEERS = {"faiss": "faiss-cpu==1.15.1", "lancedb": "lancedb==0.40.0"}
THRESHOLD, CONFIDENCE, K = 0.3, 0.2, 2
BLOCK = 20
"""Queries that one contender answers before the next one does."""
TASKS = 200
KINDS = ("policy", "value")
STATES = _common.ROOT / "bench" / "states.jsonl.gz"


class Remembering:
    """The hashed embedding, with vectors of states that come again kept: for filling a memory only."""

    def __init__(self) -> None:
        self._inner, self._known = HashedEmbedding(), dict[str, Any]()
        self.name, self.dimensions = self._inner.name, self._inner.dimensions

    def embed_all(self, texts: Sequence[str]) -> list[Any]:
        for text in texts:
            if text not in self._known:
                self._known[text] = self._inner.embed(text)
        return [self._known[text] for text in texts]


def contexts() -> list[Context]:
    """Yield contexts of real pages."""
    return [msgspec.json.decode(line, type=Seen).context for line in gzip.decompress(STATES.read_bytes()).splitlines()]


class Seen(msgspec.Struct):
    context: Context


def words(rng: random.Random, count: int) -> str:
    return " ".join("".join(rng.choices("abcdefghijklmnoprstuvw", k=rng.randint(4, 9))) for _ in range(count))


def lessons(seen: Sequence[Context], rng: random.Random, first: int = 0) -> Iterator[Reflection]:
    """Reflections without end, none like another, numbered from `first` on."""
    for number in itertools.count(first):
        context, kind = rng.choice(seen), KINDS[number % 2]
        advice = f"judge {words(rng, 2)} higher" if kind == "value" else f"do {words(rng, 3)} first"
        yield Reflection(
            id=f"{number:032x}",
            kind=kind,
            text=f"When {words(rng, 3)} is shown, {advice}, because {words(rng, 3)}.",
            instruction=f"{context.instruction} {words(rng, 3)}",
            state=embed.of_context(context)[2],
            action="click [1]",
            action_label=f'click button "{words(rng, 2)}"',
            surprise=rng.uniform(-1, 1),
            task=f"suite/{rng.randrange(TASKS)}?seed=1",
            site="127.0.0.1",
            outcome=rng.random(),
        )


def question(seen: Sequence[Context], rng: random.Random) -> Context:
    context = rng.choice(seen)
    instruction = f"{context.instruction} {words(rng, 3)}"
    task = msgspec.structs.replace(context.task, id=f"suite/{rng.randrange(TASKS)}?seed=2")
    seen_now = msgspec.structs.replace(context.observation, text=f"{words(rng, 2)}\n{context.observation.text}")
    return msgspec.structs.replace(context, task=task, instruction=instruction, observation=seen_now)


def resident() -> float:
    """MiB of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def fill(path: Path, count: int) -> float:
    """Write so many into a new memory, 500 at a time; how many a second."""
    found, began = lessons(contexts(), random.Random(count)), time.perf_counter()
    with SQLiteMemory(path, embedding=Remembering()) as memory:
        for _ in range(0, count, 500):
            memory.add_all(list(itertools.islice(found, min(500, count))))
    return count / (time.perf_counter() - began)


def multiplied(path: Path, times: int) -> None:
    """Fill a memory with copies of what it holds."""
    with SQLiteMemory(path) as memory, memory._database.writing():
        columns = "kind, task, template, about, confidence, record, vector, born, revision"
        for copy in range(1, times):
            memory._database.execute(
                f"INSERT INTO reflections (id, {columns}) SELECT id || '-{copy}', {columns} FROM reflections WHERE length(id) = 32"
            )
        memory._database.execute(
            "INSERT INTO vocabulary SELECT copy.seq, words FROM reflections AS copy "
            "JOIN reflections AS first ON first.id = substr(copy.id, 1, 32) "
            "JOIN vocabulary ON vocabulary.seq = first.seq WHERE length(copy.id) > 32"
        )
        memory._table.next_revision()


def percentiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Median and 95th percentile, in milliseconds."""
    ordered = sorted(seconds)
    return 1000 * statistics.median(ordered), 1000 * ordered[int(0.95 * (len(ordered) - 1))]


def given(folder: Path, memory: SQLiteMemory, asked: Sequence[Context]) -> Any:
    """Write for the peers what the memory holds; the vectors."""
    rows = list(memory._table.as_of(10**12))
    vectors = np.stack([np.frombuffer(row.vector, dtype="<f4") for row in rows])
    np.save(folder / "vectors.npy", vectors)
    np.save(folder / "kinds.npy", np.array([KINDS.index(row.kind) for row in rows], dtype=np.int64))
    np.save(folder / "tasks.npy", np.array([int(row.task.partition("/")[2]) for row in rows], dtype=np.int64))
    embedding = HashedEmbedding()
    np.save(folder / "queries.npy", np.stack([embed.vector(embedding, embed.of_context(each)) for each in asked]))
    return vectors


def measure(size: int, home: Path, quick: bool, noise: _common.Noise, pythons: dict[str, Path]) -> dict[str, Any]:
    queries, adds = (20, 20) if quick else (400, 200)
    rng, seen = random.Random(size + 1), contexts()
    folder = home / str(size)
    folder.mkdir()
    copies = size // 4000 if quick and size > 4000 else 1
    with ProcessPoolExecutor(1, get_context("spawn")) as other:
        rate = other.submit(fill, folder / "memory.sqlite", size // copies).result()
    multiplied(folder / "memory.sqlite", copies)
    asked, others = ([question(seen, rng) for _ in range(queries)] for _ in range(2))
    before, began = resident(), time.perf_counter()
    with ExitStack() as stack:
        memory = stack.enter_context(SQLiteMemory(folder / "memory.sqlite"))
        kept = len(memory)
        opened = time.perf_counter() - began
        for each in [question(seen, rng) for _ in range(50)]:  # warm, with other questions
            memory.retrieve(each, "policy", k=K, threshold=THRESHOLD, exclude_task=each.task.id, confidence=CONFIDENCE)
        held = resident() - before
        vectors = given(folder, memory, asked)
        peers = {name: stack.enter_context(peer(python, "_vectors.py", name, folder)) for name, python in pythons.items()}
        times, agree = in_turn(memory, asked, others, peers, vectors, noise)
        ms = {name: percentiles(noise.quiet(pairs, 100)) for name, pairs in times.items()}
        adding = list[float]()
        for reflection in itertools.islice(lessons(seen, rng, size), adds):
            start = time.perf_counter()
            memory.add(reflection)
            adding.append(time.perf_counter() - start)
    return {
        "kept": kept,
        "bulk_per_second": rate,
        "open_seconds": opened,
        "resident_mib": held,
        "file_mib": sum(file.stat().st_size for file in folder.glob("memory.sqlite*")) / 2**20,
        "ms": {**ms, "add": percentiles(adding)},
        "retrieve_ms_all": percentiles([seconds for _, seconds in times["retrieve"]]),
        "agree": agree,
    }


def in_turn(
    memory: SQLiteMemory,
    asked: Sequence[Context],
    others: Sequence[Context],
    peers: dict[str, Peer],
    vectors: Any,
    noise: _common.Noise,
) -> tuple[dict[str, list[tuple[float, float]]], dict[str, float]]:
    """Ask each memory some questions in turn.

    Return (noise, seconds) of each question by memory, and the share of questions in which each peer names one as near.
    `others`: the questions asked cold.
    """
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ("retrieve", "cold", "search", *peers)}
    same = dict.fromkeys(peers, 0)
    embedding, most = HashedEmbedding(), 8 * K
    for name in peers:  # warm
        for number in range(min(20, len(asked))):
            peers[name].ask(f"{number} 0 0 {most}")
    vectors_asked = [embed.vector(embedding, embed.of_context(context)) for context in asked]
    tasks = [context.task.id.partition("?")[0] for context in asked]

    def retrieve(number: int, contexts: Sequence[Context] = asked) -> float:
        context, start = contexts[number], time.perf_counter()
        memory.retrieve(context, "policy", k=K, threshold=THRESHOLD, exclude_task=context.task.id, confidence=CONFIDENCE)
        return time.perf_counter() - start

    def search(number: int) -> float:
        start = time.perf_counter()
        hits[number] = memory._index.nearest(vectors_asked[number], "policy", THRESHOLD, without=frozenset({tasks[number]}), most=most)
        return time.perf_counter() - start

    def of_peer(name: str, number: int) -> float:
        answer, near = peers[name].ask(f"{number} 0 {int(tasks[number].partition('/')[2])} {most}"), hits[number]
        same[name] += bool(near) and abs(float(vectors[answer["rows"][0]] @ vectors_asked[number]) - near[0].cosine) < 1e-4
        return float(answer["seconds"])

    hits = dict[int, list[Hit]]()
    ways: dict[str, Callable[[int], float]] = {"retrieve": retrieve, "search": search, **{name: partial(of_peer, name) for name in peers}}
    for start in range(0, len(asked), BLOCK):
        block = range(start, min(start + BLOCK, len(asked)))
        for name, way in ways.items():
            before, seconds = noise.probe(), [way(number) for number in block]
            slow = max(before, noise.probe())
            times[name] += [(slow, each) for each in seconds]
        for number in block:
            before, second = noise.probe(), retrieve(number, others)
            times["cold"].append((max(before, noise.probe()), second))
    return times, {name: count / len(asked) for name, count in same.items()}


def main() -> int:
    options = _common.parser(__doc__ or "")
    options.add_argument("--no-peers", action="store_true", help="without FAISS and LanceDB")
    args = options.parse_args()
    pythons = {} if args.no_peers else {name: make_venv(requirement) for name, requirement in PEERS.items()}
    noise, rows = _common.Noise(), dict[int, dict[str, Any]]()
    with tempfile.TemporaryDirectory() as home:
        for size in SIZES:
            rows[size] = measure(size, Path(home), args.quick, noise, pythons)
            print(f"{size} done", file=sys.stderr, flush=True)
    header = ["p50 / p95, ms", *(f"{size:,}" for size in SIZES)]
    names = ["retrieve", "cold", "search", *pythons, "add"]
    _common.table(header, [[name, *("{:.2f} / {:.2f}".format(*rows[size]["ms"][name]) for size in SIZES)] for name in names])
    print()
    others = ["kept", "bulk_per_second", "open_seconds", "resident_mib", "file_mib"]
    _common.table(["", *header[1:]], [[name, *(f"{rows[size][name]:,.2f}" for size in SIZES)] for name in others])
    print()
    _common.table(["agree", *header[1:]], [[name, *(f"{rows[size]['agree'][name]:.1%}" for size in SIZES)] for name in pythons])
    figures = [
        _common.Figure("p95_ms_10k", rows[10_000]["ms"]["retrieve"][1], goal=2.0, at_least=False),
        _common.Figure("p95_ms_100k", rows[100_000]["ms"]["retrieve"][1], goal=15.0, at_least=False),
    ]
    details = {"rows": rows, "threshold": THRESHOLD, "k": K, "peers": {} if args.no_peers else PEERS}
    _common.finish(args, figures, noise, _common.versions("exact-agent", "numpy"), details)
    return 0


if __name__ == "__main__":
    sys.exit(main())
