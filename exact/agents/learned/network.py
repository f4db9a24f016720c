"""The model: embeddings with late interaction, a small perceptron, and the lexical agent's scores, which it corrects.

Before training its corrections are 0: it is the lexical agent over wider candidates. For a candidate a of a state s,

    logit(a) = lexical(a) / 0.12 + w_p h(s, a) + sum of pairs(s, a) / 4
    h = relu(W2 relu(W1 [bag, said, bag * said, label~said, near~said, numbers, state]))

where `bag` and `said` are mean embeddings of the candidate's tokens and of the instruction's words, and `x~said` is the mean over the
words of x of the largest product with a word of the instruction (late interaction, as in ColBERT, Khattab and Zaharia 2020). The value of
an ended episode reads h of the last action; that of another state reads the mean h of its candidates, weighted by the policy.

Arrays of numbers in npz files, read within bounds: no pickles, and the expected names, types and shapes only.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from exact.agents.learned.features import ACTION_NUMBERS, STATE_NUMBERS, Ragged, StateFeatures
from exact.agents.learned.tokens import CROSSES, TOKENS
from exact.errors import UsageError
from exact.untrusted import read_bounded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from exact.agents.learned.features import Floats, Ints


FORMAT = 2
"""Version of features and shapes. Weights of another one are refused."""
WIDTH, HIDDEN, INNER, POOLED = 24, 64, 32, 24
"""Sizes of embeddings and layers."""
TEMPERATURE = 0.12
"""That of the lexical policy, from scores to priors."""
_INPUT = 3 * WIDTH + 2 + ACTION_NUMBERS + STATE_NUMBERS
SHAPES: dict[str, tuple[int, ...]] = {
    "tokens": (TOKENS, WIDTH),
    "pairs": (CROSSES,),
    "w1": (_INPUT, HIDDEN),
    "b1": (HIDDEN,),
    "w2": (HIDDEN, INNER),
    "b2": (INNER,),
    "policy": (INNER,),
    "ended": (INNER,),
    "ended_lexical": (2,),
    "w3": (INNER + WIDTH + STATE_NUMBERS, POOLED),
    "b3": (POOLED,),
    "value": (POOLED,),
    "value_lexical": (2,),
}
"""Shape of each part. `..._lexical`: factor of the lexical value's logit, and a constant."""
LARGEST = 4_000_000
"""Most bytes of a file of weights."""
_MOST_UNPACKED = 64_000_000
"""Most bytes of its arrays."""
Parameters = dict[str, "Floats"]


class About(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata of a file of weights."""

    format: int = FORMAT
    round: int = 0
    seed: int = 0
    episodes: int = 0
    training: str = ""
    """SHA-256 of the ids of the tasks and seeds that it was trained on, one a line, sorted."""
    trained_with_reward: bool = False


_UNTRAINED = About()


@dataclass(frozen=True)
class Network:
    """Parameters and their origin."""

    parameters: Parameters
    about: About = _UNTRAINED


class Forward(NamedTuple):
    """Outputs of the model, and the values that its gradient needs."""

    logits: Floats
    """[candidates]."""
    priors: Floats
    """[candidates]: softmax of the logits, in each state."""
    ended: Floats
    """[candidates]: correction of the logit of success if the candidate ends the episode."""
    value: Floats
    """[states]: logit of success."""
    owner: Ints
    """[candidates]: index of each candidate's state."""
    said: Floats
    bag: Floats
    best: tuple[Ints, Ints]
    """Row of the instruction's word that fits each word of `label` and of `near` best."""
    input: Floats
    hidden: Floats
    inner: Floats
    pooled_input: Floats
    pooled: Floats


def untrained(seed: int = 0) -> Network:
    """Return a model whose corrections are 0."""
    import numpy as np

    random = np.random.default_rng(seed)
    found: Parameters = {}
    for name, shape in SHAPES.items():
        scale = {"tokens": 0.2}.get(name, (2 / shape[0]) ** 0.5 if name in ("w1", "w2", "w3") else 0.0)
        found[name] = (random.standard_normal(shape) * scale).astype(np.float32) if scale else np.zeros(shape, np.float32)
    for name in ("ended_lexical", "value_lexical"):
        found[name][0] = 1.0
    return Network(found)


def forward(parameters: Parameters, given: StateFeatures) -> Forward:
    """Return priors and values of states."""
    import numpy as np

    tokens, count, states = parameters["tokens"], len(given.lexical), len(given.first)
    owner = np.repeat(np.arange(states, dtype=np.int32), np.diff([*given.first, count]))
    said, bag = mean(tokens[given.said.rows], given.said), mean(tokens[given.bag.rows], given.bag)
    label, best_label = _interaction(tokens, given, given.label)
    near, best_near = _interaction(tokens, given, given.near)
    here = said[owner]
    input = np.concatenate([bag, here, bag * here, label[:, None], near[:, None], given.numbers, given.state[owner]], axis=1)
    hidden = np.maximum(input @ parameters["w1"] + parameters["b1"], 0)
    inner = np.maximum(hidden @ parameters["w2"] + parameters["b2"], 0)
    pairs = np.add.reduceat(parameters["pairs"][given.cross.rows], given.cross.starts) / 4
    logits = given.lexical / TEMPERATURE + inner @ parameters["policy"] + pairs
    priors = np.exp(logits - np.maximum.reduceat(logits, given.first)[owner])
    priors /= np.add.reduceat(priors, given.first)[owner]
    pooled_input = np.concatenate([np.add.reduceat(priors[:, None] * inner, given.first), said, given.state], axis=1)
    pooled = np.maximum(pooled_input @ parameters["w3"] + parameters["b3"], 0)
    factor, constant = parameters["value_lexical"]
    value = factor * logit(given.value) + constant + pooled @ parameters["value"]
    return Forward(
        logits, priors, inner @ parameters["ended"], value, owner, said, bag, (best_label, best_near), input, hidden, inner, pooled_input,
        pooled,
    )  # fmt: skip


def ended_logit(parameters: Parameters, correction: Floats, lexical: Floats) -> Floats:
    """Return the logit of success of ended episodes. `lexical`: the lexical agent's values of them, in (0, 1)."""
    factor, constant = parameters["ended_lexical"]
    found: Floats = factor * logit(lexical) + constant + correction
    return found


def logit(value: Floats) -> Floats:
    """Return the logit of values, which are cut at 0.01 and 0.99."""
    import numpy as np

    cut = np.clip(value, 0.01, 0.99)
    found: Floats = np.log(cut / (1 - cut)).astype(np.float32)
    return found


def mean(rows: Floats, lists: Ragged) -> Floats:
    """Return the mean row of each list."""
    import numpy as np

    found: Floats = np.add.reduceat(rows, lists.starts) / lengths(lists)[:, None].astype(np.float32)
    return found


def lengths(lists: Ragged) -> NDArray[np.int64]:
    """Return the length of each list."""
    import numpy as np

    return np.diff([*lists.starts, len(lists.rows)])


def _interaction(tokens: Floats, given: StateFeatures, of: Ragged) -> tuple[Floats, Ints]:
    """Return, for each candidate, the mean over its words of the largest product with a word of the instruction; and those words' rows."""
    import numpy as np

    largest, best = np.empty(len(of.rows), np.float32), np.empty(len(of.rows), np.int32)
    bounds = [*of.starts[given.first], len(of.rows)]
    said = [*given.said.starts, len(given.said.rows)]
    for state in range(len(given.first)):
        part = slice(bounds[state], bounds[state + 1])
        words = given.said.rows[said[state] : said[state + 1]]
        unique, place = np.unique(of.rows[part], return_inverse=True)
        products = tokens[unique] @ tokens[words].T
        at = products.argmax(axis=1)
        largest[part], best[part] = products[np.arange(len(unique)), at][place], words[at][place]
    return np.add.reduceat(largest, of.starts) / lengths(of).astype(np.float32), best


def save(network: Network, path: Path) -> None:
    """Write the weights as a compressed npz of half floats."""
    import numpy as np

    about = np.frombuffer(msgspec.json.encode(network.about), np.uint8)
    held: dict[str, Any] = {name: part.astype(np.float16) for name, part in network.parameters.items()}
    buffer = io.BytesIO()
    np.savez_compressed(buffer, about=about, **held)
    path.write_bytes(buffer.getvalue())


def load(path: str | Path = "") -> Network:
    """Return the weights of a file, by default those of the package.

    Raises UsageError for a file that holds anything but numbers of the expected names and shapes.
    """
    import numpy as np

    name = str(path) or "the package's weights"
    try:
        data = read_bounded(Path(path), LARGEST) if path else resources.files(__package__).joinpath("weights.npz").read_bytes()
        held = read_arrays(data, ("about", *SHAPES), _MOST_UNPACKED)
        about = msgspec.json.decode(numbers(held["about"], np.uint8).tobytes(), type=About)
        if about.format != FORMAT:
            raise ValueError(f"format {about.format}, expected {FORMAT}")
        parameters = {part: numbers(held[part], np.float16, shape).astype(np.float32) for part, shape in SHAPES.items()}
    except UNREADABLE as error:
        raise UsageError(f"the weights {name} do not load: {' '.join(str(error).split())}: train some by `exact train builtin`") from error
    return Network(parameters, about)


UNREADABLE = (OSError, ValueError, LookupError, EOFError, MemoryError, OverflowError, RecursionError, zipfile.BadZipFile, zlib.error)
"""Exceptions that reading an npz file may raise, even a hostile one."""
Shape = tuple[int | None, ...]
"""Lengths of an array's axes; None: any."""


def read_arrays(data: bytes, names: Collection[str], most: int) -> Mapping[str, NDArray[Any]]:
    """Return the arrays of an npz file of at most `most` bytes unpacked. Raises one of UNREADABLE if it holds other names."""
    import numpy as np

    if not zipfile.is_zipfile(io.BytesIO(data)):
        raise ValueError("it is no npz file")
    with zipfile.ZipFile(io.BytesIO(data)) as held:  # numpy reads an array before its shape is known
        if sum(each.file_size for each in held.infolist()) > most:
            raise ValueError(f"its arrays have more than {most:,} bytes")
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        if set(held.files) != set(names):
            raise ValueError(f"it holds {', '.join(sorted(held.files))[:80]}")
        return {name: held[name] for name in names}


def numbers(found: NDArray[Any], kind: type[Any], shape: Shape | None = None) -> NDArray[Any]:
    """Return an array. Raises ValueError if its type or shape is not the expected one, or a number is not finite."""
    import numpy as np

    fits = shape is None or (found.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, found.shape, strict=True)))
    if found.dtype != kind or not fits or not np.isfinite(found).all():
        raise ValueError(f"an array of {found.dtype} {found.shape}, expected finite {np.dtype(kind)} {shape or ''}")
    return found
