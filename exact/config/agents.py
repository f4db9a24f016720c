"""Configuration of the agent: policy, value function and reflection."""

from __future__ import annotations

import re
import urllib.parse
from typing import Any, Literal

import msgspec

from exact.config.aliases import AtLeastOne, AtLeastZero, Share, Strict
from exact.plugins import check_kind

_PASSWORD = re.compile(r"postgres(ql)?:(//[^@/]*:[^@/]+@|//[^?]*:[^?]+@|.*[?&](ssl)?password=)", re.S)
"""Matches a password in the address of a PostgreSQL database, also one that is not percent-encoded."""


POLICIES = ("learned", "lexical", "llm", "random")
VALUES = (
    *("learned", "lexical", "llm", "single_debate", "debate", "rubric", "comparative", "logprob", "cascade", "ensemble", "trained"),
    *("constant", "oracle", "reward"),
)
POLICY_GROUP, VALUE_GROUP = "exact.policies", "exact.values"
"""Groups of entry points."""


class ViewConfig(Strict, frozen=True, kw_only=True):
    """The part of a state that prompts show: those of policies, value functions and the reflector."""

    images: bool = False
    """Show the screenshot."""
    marks: bool = False
    """Draw the elements' ids into the screenshot, except for `policy.actions: computer`, which aims at points."""
    text: bool = True
    """Show the observation's text. Without it, the screenshot is shown alone."""
    tree: Literal["full", "view"] = "full"
    """Part of the page that the text covers: all of it, or the part in view."""
    html: bool = False
    """Show the page's HTML, in at most `observation_tokens`. Needs `browser.html`."""
    history: AtLeastZero = 5
    """Past steps in the prompt. Earlier ones are summarised in a line."""
    observation_tokens: AtLeastOne = 5000
    """Most tokens of one observation. The least important parts are left out first, with a note."""
    image_tokens: AtLeastOne = 1500
    """Most tokens of one picture. A more expensive one is scaled down."""


class PolicyConfig(Strict, frozen=True, kw_only=True):
    """The policy, which proposes actions."""

    kind: str = "learned"
    """Kind of policy. learned: the built-in agent's; if a page in a browser sets the task, a small model that its searches trained, else
    lexical. lexical: rules, without a model. llm: a language model. random: any action, as a control. `module:attribute`,
    `file.py:attribute` or a name in the entry points `exact.policies`: your own policy, made with `options`."""
    options: dict[str, Any] = {}
    """Keywords for your own policy. learned: `weights`, a file in place of the package's."""
    samples: AtLeastOne = 8
    """llm: answers sampled for one expansion."""
    form: Literal["auto", "samples", "list", "conversation", "likeliest"] = "auto"
    """llm: form of the answers. samples: one action in each of many answers. list: up to k actions with confidences in one answer.
    conversation: like samples, but each of the last `view.history` steps is a turn with its whole observation, as in the conversations that
    `exact export` writes. likeliest: the k likeliest actions that the state offers, by the probabilities of their tokens; the server has to
    list these and to continue an answer (llama.cpp, vLLM, SGLang). auto: samples, or a list if several samples are wanted from a provider
    that gives one choice a request."""
    actions: Literal["text", "computer"] = "text"
    """llm: form of an action. text: a line in the answer. computer: a call of the model's own computer tool, which aims at points of the
    screenshot. Needs `view.images`, and a model with `api: responses` or `messages`."""
    role: str = "policy"
    """llm: role of the model: `policy`, or a part such as `policy.1` with a separate model under `models.parts`."""
    weigh: Literal["frequency", "logprobs"] = "frequency"
    """llm: weight of an answer, or of an action in a list. frequency: 1, in a list the stated confidence. logprobs: the geometric mean of
    its tokens' probabilities, which are requested then; if the server gives none, as with frequency."""
    style: Literal["plain", "explorative"] = "plain"
    """llm: style of the prompt. explorative: the agent may try uncertain actions and step back on its own."""
    thoughts: bool = True
    """llm: ask for a line of thought above the action. False: the action alone, for small models, whose answers end after a thought. Models
    that are known to reason are asked for none."""
    examples: str = ""
    """llm: YAML list of solved steps that every prompt shows, each with `goal`, `observation`, `thought` and `action`. Empty: none."""
    changes: bool = False
    """llm, `form: conversation`: show a state after the first one by the lines that changed, if they are fewer characters. A model that was
    trained on exported conversations needs those of the same setting."""
    elements: Literal["id", "label"] = "id"
    """llm: how text and actions name elements. id: `[1] button "Previous"` and `click [1]`. label: `"Previous" button [1]` and `click
    "Previous" button [1]`, in which a unique label needs no id. It is for small models, whose answer is then a copy."""
    grammar: Literal["none", "action", "answer"] = "none"
    """llm: constrain answers by a grammar of the actions, the elements in the prompt and the known keys, if the server takes grammars
    (llama.cpp, vLLM, SGLang). action: the action alone. answer: one line of thought, then the action."""

    def __post_init__(self) -> None:
        check_kind("policy.kind", self.kind, POLICIES, POLICY_GROUP)


class ValueConfig(Strict, frozen=True, kw_only=True):
    """The value function, which evaluates states."""

    kind: str = "lexical"
    """Kind of value function. lexical: rules, without a model. learned: a small model that corrects these rules. llm: a grade.
    single_debate: a grade after arguments for both sides in one answer. debate: two debaters and judges. rubric: yes-or-no checks.
    comparative: siblings ranked against each other. logprob: the probability of yes against no, from one token. trained: a classifier's
    probability. cascade, ensemble: see `members`. constant: 0.5 for everything, as a control. oracle: the benchmark's own score of terminal
    states, marked everywhere. reward: the total reward of an environment that gives one for each step, refused on the tasks of a benchmark,
    marked everywhere. `module:attribute`, `file.py:attribute` or a name in the entry points `exact.values`: your own value function, made
    with `options`. Default: lexical, or a cascade if a language model proposes and states are searched."""
    options: dict[str, Any] = {}
    """Keywords for your own value function. learned: `weights`, a file in place of the package's."""
    range: tuple[float, float] = (0.0, 1.0)
    """reward: total rewards that are worth 0 and 1. Those outside are worth as much."""
    samples: AtLeastOne = 4
    """Samples for one state; the value is their mean. debate: samples of each judge in each order. logprob: answers that are counted if the
    server lists no likeliest tokens; else one call is enough."""
    grades: Literal["even", "web", "desktop", "reinforced"] = "even"
    """Scale of the letter grades: see docs/agents.md."""
    rounds: AtLeastOne = 1
    """debate: rounds of arguments. From the second round on each side has read the other."""
    changes: bool = False
    """llm, single_debate, rubric, debate, logprob, trained: show an earlier state whole, then what each step after it changed, if that is
    fewer characters, for at most `view.history` steps. A prompt then begins as that of the state before it, which servers cache. A trained
    classifier needs the setting of its training."""
    judges: AtLeastOne = 1
    """debate: number of judges. Each may have a separate model: `value.judge`, `value.judge.1`, ..."""
    verdict: Literal["grade", "logprob"] = "grade"
    """debate: verdict of a judge. grade: a letter after reasons. logprob: the probability of yes against no, from one token."""
    threshold: Share = 0.15
    """llm, single_debate, rubric, debate: standard error of the value above which `samples` more are drawn."""
    most: AtLeastOne = 6
    """Most samples for one state; in a debate, of each judge in each order."""
    role: str = "value"
    """Role of the model: `models.<role>`. A debate uses `<role>.supporter`, `.opposer`, `.judge`, each else `models.<role>`."""
    members: tuple[ValueConfig, ...] = ()
    """cascade: the cheap value function, then the expensive one. Empty: one sample of a grade, then a debate, with these settings.
    ensemble: all of its members."""
    calibration: str = ""
    """Calibration curve that values are mapped by, written by `exact train calibration --fit`. Empty: none."""
    comparison: Literal["values", "llm"] = "values"
    """Ranking of siblings in searches that compare them: by their values, or by a model, pair by pair."""

    def __post_init__(self) -> None:
        check_kind("value.kind", self.kind, VALUES, VALUE_GROUP)
        if self.kind == "cascade" and not self.members:
            plain = msgspec.structs.replace(self, kind="llm", samples=1, calibration="")
            msgspec.structs.force_setattr(self, "members", (plain, msgspec.structs.replace(self, kind="debate", calibration="")))


class ReflectionConfig(Strict, frozen=True, kw_only=True):
    """Reflections: those written after a run, and those retrieved in it."""

    kind: Literal["none", "builtin", "llm"] = "builtin"
    """Author of reflections. none: no reflections. builtin: rules. llm: a language model."""
    memory: str = ""
    """Path of the SQLite memory, or `postgresql://...` without a password. Empty: `memory.sqlite` in the run directory. `module:attribute`,
    `file.py:attribute` or a name in the entry points `exact.memories`: your own memory, made without arguments."""
    embedding: Literal["hashed", "minilm", "model"] = "hashed"
    """Embedding that situations are compared by. hashed: words, pairs of words and letter groups, offline. minilm: a small model, offline
    (extra `minilm`). model: `models.embedding`."""
    capacity: AtLeastOne = 100_000
    """Most reflections in memory. Beyond it, those that helped least are evicted."""
    round: AtLeastZero = 0
    """Tasks that see the same state of the memory, so that their order has no effect. 0: each task sees all earlier reflections."""
    signals: tuple[Literal["outcome", "policy", "judge", "sibling", "branch", "edge", "edge_value"], ...] = ("policy", "outcome", "judge")
    """Signals of wrong expectations that reflections are written for: see docs/reflection.md. ExACT's are `edge` and `edge_value`."""
    threshold: Share = 0.25
    """Size of a surprise, in [0, 1], from which a reflection is written."""
    most: AtLeastOne = 1
    """Most steps of a task that reflections are written for, the most surprising first; for the policy and for the value function each."""
    outcome: Literal["judge", "evaluator"] = "judge"
    """Source of an attempt's outcome. judge: the value function. evaluator: the benchmark, which later attempts must not know; such
    reflections are marked."""
    confirm: bool = False
    """Evaluate the final state once more with `outcome: judge`, independently of the search, because a state that was chosen for its value
    looks better than it is. After an attempt that fails this evaluation, no action is praised."""
    confidence: Share = 0.2
    """Least certainty |2 v - 1| of an outcome v that the agent evaluated itself, for its reflection to be shown."""
    k: AtLeastZero = 2
    """Reflections shown at an expansion."""
    value_k: AtLeastZero | None = None
    """Reflections shown at an evaluation. None: `k`."""
    similarity: Share = 0.3
    """Least cosine of the situations for a reflection to be shown."""
    exclude_same_task: bool | None = None
    """Hide reflections from any seed of the same task, or from its template. None: only for tasks of a benchmark."""

    def __post_init__(self) -> None:
        if _PASSWORD.match(urllib.parse.unquote(self.memory)):
            raise ValueError("a memory's address holds no password, for it is kept with the run: set PGPASSWORD, or use ~/.pgpass")
