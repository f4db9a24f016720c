"""The agent: what proposes, what judges, and what it learns."""

from __future__ import annotations

import re
import urllib.parse
from typing import Literal

import msgspec

from exact.config.strict import Amount, AtLeastOne, AtLeastZero, Share, Strict

_PASSWORD = re.compile(r"postgres(ql)?:(//[^@/]*:[^@/]+@|//[^?]*:[^?]+@|.*[?&](ssl)?password=)", re.S)
"""In the address of a PostgreSQL database, also where it is not percent-encoded as it should be."""


class PolicyConfig(Strict, frozen=True, kw_only=True):
    """Who proposes actions."""

    kind: Literal["builtin", "llm", "random"] = "builtin"
    samples: AtLeastOne = 8
    """llm: answers drawn for one expansion."""
    form: Literal["auto", "samples", "list"] = "auto"
    """llm. samples: one action an answer, many answers. list: up to k actions with confidences in one answer. auto: samples, but a list
    where several samples are wanted and the provider is known to give one answer a request."""
    role: str = "policy"
    """llm: whose model is asked: `models.policy`, or a part such as `policy.1` with a model of its own under `models.parts`."""
    weigh: Literal["frequency", "logprobs"] = "frequency"
    """llm, samples: what an answer counts. logprobs: the geometric mean of its tokens' probabilities, where the server gives them."""
    temperature: Amount = 1.0
    """llm: priors are taken to the power of one over this: below 1 surer, above 1 flatter."""
    unseen: Share = 1.0
    """llm, samples: as many are drawn again while the share of actions not seen yet is estimated above this,"""
    most: AtLeastOne = 32
    """llm: until there are so many."""
    repair: bool = True
    """llm: answers that cannot be used go back once, with the reason."""
    style: Literal["plain", "explorative"] = "plain"
    """llm. explorative: may try what it is unsure of, and step back on its own."""
    examples: str = ""
    """llm: path to a YAML list of solved steps that every prompt shows; each has `goal`, `observation`, `thought` and `action`."""
    prior_floor: Share = 0.02
    """llm: no proposal's prior is below this."""
    images: bool = False
    """llm: whether the screenshot goes into the prompt."""
    history: AtLeastZero = 5
    """llm: how many past steps the prompt shows; those before are summarised in a line."""
    observation_tokens: AtLeastOne = 5000
    """llm: of one observation in the prompt; what does not fit is left out by its weight, and told."""
    marks: bool = False
    """llm: whether the screenshot shows the elements' ids."""
    text: bool = True
    """llm: whether the observation's text goes into the prompt; without it, the screenshot alone."""
    plain: bool = False
    """llm: with `marks`, whether the screenshot without them is shown too."""
    tree: Literal["full", "view"] = "full"
    """llm: whether the text is of the whole page or of what is in view."""
    html: bool = False
    """llm: whether the page's HTML is shown, in as many tokens; it wants `browser.html`."""
    image_tokens: AtLeastOne = 1500
    """llm: of one picture; a dearer one is scaled down."""


class ValueConfig(Strict, frozen=True, kw_only=True):
    """Who judges states."""

    kind: Literal[
        "builtin", "llm", "single_debate", "debate", "rubric", "comparative", "cascade", "ensemble", "trained", "constant", "oracle"
    ] = "builtin"  # fmt: skip
    """llm: a grade. single_debate: a grade, after arguing both sides in one answer. debate: two debaters and judges. rubric: checks of yes
    and no. comparative: siblings ranked against each other. trained: a classifier's probability. cascade, ensemble: see
    `members`. constant: 0.5 for everything, a control. oracle: the benchmark's own verdict on what ended in search; marked as one
    everywhere. Where none is named, it is builtin, or with a language model as policy a cascade."""
    samples: AtLeastOne = 4
    """Judgements drawn for one state; the value is their mean. debate: for each judge and each order."""
    grades: Literal["even", "web", "desktop", "reinforced"] = "even"
    """What the letters are worth: see docs/agents.md."""
    rounds: AtLeastOne = 1
    """debate: how often both sides speak; from the second on each has read the other."""
    judges: AtLeastOne = 1
    """debate: their number; each may have a model of its own: `value.judge`, `value.judge.1`, ..."""
    threshold: Share = 0.15
    """llm, single_debate, rubric, debate: while the standard error of the value is above this, as many judgements are drawn again,"""
    most: AtLeastOne = 6
    """until there are so many; in a debate, of each judge in each order."""
    role: str = "value"
    """Whose model is asked: `models.<role>`; a debate's are `<role>.supporter`, `.opposer` and `.judge`, each else `models.<role>`."""
    members: tuple[ValueConfig, ...] = ()
    """cascade: the cheap one, then the dear one; left out, one sample of a grade and a debate, with these settings. ensemble: all."""
    calibration: str = ""
    """Path to a curve that `exact calibrate --fit` wrote: values are taken through it."""
    comparison: Literal["values", "llm"] = "values"
    """How a search that compares siblings has them ranked: by their values, or by a model, pair by pair."""
    images: bool = False
    history: AtLeastZero = 5
    observation_tokens: AtLeastOne = 5000
    marks: bool = False
    text: bool = True
    plain: bool = False
    tree: Literal["full", "view"] = "full"
    html: bool = False
    image_tokens: AtLeastOne = 1500

    def __post_init__(self) -> None:
        if self.kind == "cascade" and not self.members:
            plain = msgspec.structs.replace(self, kind="llm", samples=1, calibration="")
            msgspec.structs.force_setattr(self, "members", (plain, msgspec.structs.replace(self, kind="debate", calibration="")))


class ReflectionConfig(Strict, frozen=True, kw_only=True):
    """What is learned from a run, and what is recalled in it."""

    kind: Literal["none", "builtin", "llm"] = "builtin"
    memory: str = ""
    """Path of the SQLite memory, or `postgresql://...` without a password; empty: `memory.sqlite` in the run directory."""
    embedding: Literal["hashed", "minilm", "model"] = "hashed"
    """How situations are compared. hashed: by words, pairs of words and letter groups, offline. minilm: by a small model, offline (extra
    `minilm`). model: `models.embedding`."""
    capacity: AtLeastOne = 100_000
    """Reflections kept; of more, those that helped least are evicted."""
    round: AtLeastZero = 0
    """Tasks that are shown the same state of the memory, so that their order does not matter; 0: each is shown all from before it."""
    signals: tuple[Literal["outcome", "policy", "judge", "sibling", "branch", "edge", "edge_value"], ...] = ("policy", "outcome", "judge")
    """Which wrong expectations make lessons: see docs/reflection.md. ExACT's are `edge` and `edge_value`."""
    add_q: bool = False
    """Whether |Q| is added to the size of an `edge` (ExACT's second measure)."""
    threshold: Share = 0.25
    """A lesson is written of a surprise whose size reaches this,"""
    most: AtLeastOne = 1
    """for at most so many steps of a task, for the policy and for the value function each; the most surprising first."""
    outcome: Literal["judge", "evaluator"] = "judge"
    """Who says how an attempt ended. evaluator: the benchmark, which later attempts must not know; such lessons are marked."""
    confirm: bool = False
    """With `judge`: whether the end is judged once more for this, independently of the search, by a judge that may say something else.
    An end that was chosen for its value looks better than it is. After an attempt that failed so, no action is praised."""
    confidence: Share = 0.2
    """A lesson whose outcome the agent judged itself is shown only if that judgement v was this sure: |2 v - 1|."""
    observation_tokens: AtLeastOne = 5000
    """llm: of each observation in the prompt."""
    k: AtLeastZero = 2
    """How many reflections are shown at an expansion;"""
    value_k: AtLeastZero | None = None
    """at an evaluation, None: as many."""
    similarity: Share = 0.3
    """Cosine of the situations below which a reflection is not shown at an expansion;"""
    value_similarity: Share | None = None
    """at an evaluation, None: the same."""
    exclude_same_task: bool | None = None
    """Whether nothing learned on any seed of the same task, or on its template, is shown. None: where tasks are a benchmark's."""

    def __post_init__(self) -> None:
        if _PASSWORD.match(urllib.parse.unquote(self.memory)):
            raise ValueError("a memory's address holds no password, for it is kept with the run: set PGPASSWORD, or use ~/.pgpass")
