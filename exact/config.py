"""Configuration of a run: one YAML file, read strictly.

Every key has a type and a default; an unknown key is an error that names the nearest valid one. `--set search.c=1` overrides one.
"""

from __future__ import annotations

import difflib
import re
import urllib.parse
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, get_origin

import msgspec

from exact.errors import UsageError, unknown

AtLeastZero = Annotated[int, msgspec.Meta(ge=0)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]
Amount = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]

_PASSWORD = re.compile(r"postgres(ql)?:(//[^@/]*:[^@/]+@|//[^?]*:[^?]+@|.*[?&](ssl)?password=)", re.S)
"""In the address of a PostgreSQL database, also where it is not percent-encoded as it should be."""


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all sections."""


class ScopeLimits(Strict, frozen=True, kw_only=True):
    """Hard caps inside a task. None: no cap on that."""

    money: Amount | None = None
    """US dollars."""
    calls: AtLeastZero | None = None
    """Model calls."""
    tokens: AtLeastZero | None = None
    transitions: AtLeastZero | None = None
    """Environment steps, replays included."""
    evaluations: AtLeastZero | None = None
    seconds: Amount | None = None
    """Wall time."""


class SearchConfig(Strict, frozen=True, kw_only=True):
    """Which algorithm looks ahead, and how far. Each strategy is described where its name leads: exact/search/."""

    algorithm: str = "mcts"
    """A name in the registry: `exact config algorithms` lists them; others come by the entry point `exact.algorithms`."""
    iterations: AtLeastOne = 16
    """Backed-up visits of the tree for each committed action; what a step leaves over, the next may use."""
    k: AtLeastOne = 6
    """Distinct proposals asked for at an expansion."""
    depth: AtLeastOne = 8
    """How many actions below the root a search may look."""
    retries: AtLeastZero = 2
    """How often a failed piece of work is asked for again before its node is closed."""
    workers: AtLeastOne = 1
    """How many pieces of work of one tree may be under way at once; each has a world of its own."""
    order: Literal["arrival", "selection"] = "arrival"
    """With several workers, results are taken in as they come, or in rounds, in the order they were asked for: that takes longer and
    leads to the same tree each time, as far as world and models do."""
    judgements: AtLeastOne | None = None
    """How often one state may be judged. None: 3 times by a language model, once by a judge that would say the same again."""
    explore: Literal["puct", "uct", "muzero"] = "puct"
    c: Amount = 0.5
    """Exploration constant on values in [0, 1]; with a schedule, the first."""
    doubt: Amount = 0.0
    """mcts: exploration of an action is multiplied by 1 + this times the spread between the judges of the state it leads to."""
    contest: AtLeastZero | None = None
    """mcts, gumbel, abmcts: of the iterations, how many at the end go to judging the root's candidates again, where they lie within `z`
    errors of each other, until the gap between them exceeds its error. None: a quarter of them for a cascade, else none."""
    batch: bool = False
    """beam, tot_bfs: siblings are judged together, in one question where the value function can."""
    c_last: Amount | None = None
    """The last exploration constant of a schedule; None: `c`."""
    c_schedule: Literal["constant", "linear", "exponential", "cosine"] = "constant"
    first_play: Literal["parent", "mean", "zero", "lowest", "reduced"] = "parent"
    first_play_reduction: Share = 0.25
    """For `reduced`."""
    normalise: Literal["none", "minmax", "siblings"] = "none"
    noise_floor: Share = 0.05
    """Differences of Q below this are not blown up by normalising."""
    parallel: Literal["counts", "loss"] = "counts"
    collision: Literal["mask", "wait", "resample"] = "mask"
    expansion: Literal["lazy", "eager", "speculative"] = "lazy"
    revisit: Literal["exhaust", "repeat"] = "exhaust"
    backup: Literal["mean", "max", "mixed"] = "mean"
    mix: Share = 0.5
    """For `mixed`: the share of the maximum."""
    discount: Share = 1.0
    """What a value is worth one action earlier."""
    merging: Literal["none", "noop", "siblings", "full"] = "siblings"
    branching_decay: Share = 1.0
    """`k` times this for each level below the root; at least one proposal."""
    candidates: Literal["best", "sampled", "uniform"] = "best"
    temperature: Amount = 1.0
    """Of the priors: below 1 surer, above 1 flatter."""
    widening: Amount | None = None
    """Progressive widening: `widening * visits ** widening_power` children; None: all proposals at once."""
    widening_power: Share = 0.5
    final: Literal["visits", "value", "max_robust", "lower_bound"] = "lower_bound"
    z: Amount = 1.0
    """For `lower_bound`: how many standard errors."""
    noise: Share = 0.3
    """For `lower_bound`: the least deviation of one judgement that is assumed; what was measured counts where it is more."""
    think: Share | None = None
    """Prior from which an action is committed without a search, where it is not presumed to write and the value does not fall."""
    enough: Share | None = None
    """Value from which an end, confirmed by an independent judgement, ends the search."""
    early: bool = False
    """Whether to stop when more iterations cannot change the decision."""
    subtree: bool = False
    """Whether `iterations` counts visits of the root, so that a kept subtree counts."""
    commit: Literal["replan", "plan"] = "replan"
    """replan: one action, then search again. plan: the whole path, until the world differs from what was foreseen."""
    enact: Literal["enact", "promote"] = "enact"
    """At a commit. enact: act in the live world. promote: the searched world becomes the live one, where it rolls back."""
    prefetch: AtLeastZero = 1
    """Worlds to spare, which are brought to the likely next states while a model thinks; where worlds fork."""
    breadth: AtLeastOne = 3
    """Beam search and tree of thoughts: states kept at each level. best_of_n: trajectories."""
    limits: ScopeLimits = ScopeLimits()
    """Caps on the search for one committed action."""
    iteration: ScopeLimits = ScopeLimits()
    """Caps on one iteration."""
    options: dict[str, Any] = {}
    """What else an algorithm takes, by name."""


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
    mend: bool = True
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


class PriceConfig(Strict, frozen=True, kw_only=True):
    """US dollars for a million tokens, where the price list does not know the model."""

    input: Amount
    output: Amount
    cached: Amount | None = None
    """Of input that the server had in its prefix cache; None: as much as other input."""


class ModelConfig(Strict, frozen=True, kw_only=True):
    """One model. Keys come from the environment only."""

    model: str
    provider: str = ""
    """A name in providers.yaml (`exact config providers` lists them). Empty: `openai`, or with a base_url `compatible`."""
    base_url: str = ""
    """Of the server, where it is not the provider's."""
    api_key_env: str = ""
    """Name of the environment variable that holds the key; empty: the provider's."""
    temperature: Amount = 1.0
    top_p: Share = 0.95
    max_tokens: AtLeastOne = 512
    timeout: Amount = 120.0
    """Seconds for one call with all its retries."""
    retries: AtLeastZero = 4
    logprobs: bool = False
    api: Literal["chat", "classify"] = "chat"
    """classify: a classifier for `value.kind: trained`, asked at `/classify`: see docs/models.md."""
    price: PriceConfig | None = None
    extra: dict[str, Any] = {}
    """Further fields of the request as the server names them: `{reasoning_effort: low}`."""

    def __post_init__(self) -> None:
        if re.search("[@?]", self.base_url.partition("://")[2]):
            raise ValueError("a base_url holds no credentials and no query: keys come from the environment (`api_key_env`)")


class CacheConfig(Strict, frozen=True, kw_only=True):
    """Answers that were given before."""

    mode: Literal["none", "read-write", "replay-only"] = "none"
    """read-write: an equal question has the answer it had before. replay-only: a question that was not asked before is an error."""
    path: str = ""
    """SQLite file, which runs may share; empty: `answers.sqlite` in the run directory."""


class ModelsConfig(Strict, frozen=True, kw_only=True):
    """A model for each role. `value` and `reflection` are `policy`'s where not given; `embedding` has none where not given."""

    policy: ModelConfig | None = None
    value: ModelConfig | None = None
    reflection: ModelConfig | None = None
    embedding: ModelConfig | None = None
    parts: dict[str, ModelConfig] = {}
    """Models of parts of a role, by the part's name: `value.judge`. A part without one has that of what stands before its last dot."""
    providers: str = ""
    """Path of a YAML file with further providers; a name that the package has too is the file's."""
    cache: CacheConfig = CacheConfig()

    @property
    def judges(self) -> dict[str, ModelConfig]:
        """Models that a benchmark's verdicts are asked of: the part `evaluator` and parts of it, by name."""
        return {name: model for name, model in self.parts.items() if name.partition(".")[0] == "evaluator"}


class Limits(Strict, frozen=True, kw_only=True):
    """Hard caps on one task. None: no cap on that."""

    money: Amount | None = None
    """US dollars."""
    calls: AtLeastZero | None = None
    """Model calls."""
    actions: AtLeastZero | None = 15
    """Committed actions."""
    transitions: AtLeastZero | None = None
    """Environment steps, replays included. When they are used up, actions are still committed, unexplored."""
    tokens: AtLeastZero | None = None
    """Tokens in and out."""
    iterations: AtLeastZero | None = None
    """Iterations of all searches together."""
    evaluations: AtLeastZero | None = None
    """Judgements by the value function."""
    seconds: Amount | None = None
    """Wall time."""


class PlaceConfig(Strict, frozen=True, kw_only=True):
    """Where a browser says that it is."""

    latitude: Annotated[float, msgspec.Meta(ge=-90, le=90)]
    longitude: Annotated[float, msgspec.Meta(ge=-180, le=180)]
    accuracy: Amount = 10.0
    """Metres."""


class ProxyConfig(Strict, frozen=True, kw_only=True):
    """A proxy between the browser and all sites. A value `$NAME` is that environment variable's."""

    server: str = ""
    """`http://host:port` or `socks5://host:port`; empty: none but what the environment variables of the system say."""
    bypass: str = ""
    """Hosts that are reached without it, with commas between."""
    user: str = ""
    password: str = ""


class CertificateConfig(Strict, frozen=True, kw_only=True):
    """What a browser shows a server of who it is: PEM files, certificate and key, or one PKCS #12 file."""

    certificate: str = ""
    key: str = ""
    pfx: str = ""
    passphrase: str = ""
    """Or `$NAME`, an environment variable."""


class TapeConfig(Strict, frozen=True, kw_only=True):
    """Recorded traffic of sites: see docs/design/worlds.md."""

    path: str = ""
    """A file of exchanges, scrubbed of credentials; empty: none."""
    mode: Literal["record", "replay"] = "record"
    """record: what is answered is written down too. replay: it is answered from there, and nobody is reached."""


class LoginConfig(Strict, frozen=True, kw_only=True):
    """How a world logs in before a task begins. A value `$NAME` is that environment variable's; see docs/own_application.md."""

    state: str = ""
    """File with cookies and storage, as `exact login` writes it. A later log-in by `script` does not change it."""
    url: str = ""
    """Where `script` begins; empty: at the task's start."""
    script: tuple[str, ...] = ()
    """Actions in the grammar; an element is named by role and name: `fill [textbox "User name"] "<user>"`."""
    secrets: dict[str, str] = {}
    """What `script` and agents may fill in by a name in angle brackets: agents, models and runs never see the values."""
    headers: dict[str, str] = {}
    """Sent with each request to the task's origins, and to no other."""
    user: str = ""
    """For basic authentication at the task's origins."""
    password: str = ""
    certificate: CertificateConfig | None = None
    expired: str = ""
    """Regular expression: an address that it matches says that nobody is logged in any more. At a task's start `script` renews the
    log-in then; without one, or in the middle of a task, the world is broken, which is never a score. Status 401 of a page says so too."""


class BrowserConfig(Strict, frozen=True, kw_only=True):
    """The browser world. A task may set much of it its own way, in its metadata's `browser`: see environments/browser/task_config.py."""

    headed: bool = False
    screenshots: bool = True
    """Whether each state's screenshot is kept (reports and image prompts want it)."""
    width: AtLeastOne = 1280
    height: AtLeastOne = 720
    scale: Annotated[float, msgspec.Meta(gt=0, le=8)] = 1.0
    """Pixels of a screenshot for each CSS pixel, along a side."""
    locale: str = "en-US"
    timezone: str = "UTC"
    user_agent: str = ""
    """Empty: the browser's own."""
    place: PlaceConfig | None = None
    permissions: tuple[str, ...] = ()
    """Granted to the task's origins, by Playwright's names: geolocation, clipboard-read, notifications, ..."""
    mask: tuple[str, ...] = ()
    """CSS selectors: what they match is blank in screenshots and in all text, before anybody sees it."""
    login: LoginConfig = LoginConfig()
    html: bool = False
    """Whether the page's HTML is observed too, shortened, with the ids of the elements."""
    dialogs: Literal["ask", "accept", "dismiss"] = "ask"
    """What is done with alerts, questions and warnings of pages. ask: the agent sees them, and answers."""
    download_bytes: AtLeastZero = 50_000_000
    """A file that is larger is not downloaded."""
    traces: str = ""
    """Folder in which Playwright's trace of each world that acts for good is kept; empty: none. Traces hold all that a page holds."""
    tape: TapeConfig = TapeConfig()
    proxy: ProxyConfig = ProxyConfig()
    authorities: tuple[str, ...] = ()
    """PEM files of certificate authorities that sign the task's sites, besides the known ones."""
    settle_seconds: Amount = 3.0
    """Cap on waiting for a page to become quiet after an action."""
    answer_seconds: Amount = 15.0
    """How long a server may take to answer a navigation: its loading is stopped then, and the page before stays."""
    allow_origins: tuple[str, ...] = ()
    """Origins that may be navigated to, besides the task's."""
    page_snapshots: bool = False
    """Whether a page may be returned to by a snapshot where that is cheaper than a replay: its fields, storage, focus and scroll come
    back, its scripts' state does not, and a fingerprint sees that only as far as it shows. Not in worlds that fork: theirs are whole."""
    masks: tuple[str, ...] = ()
    """Regular expressions: what they match in names, values and addresses does not tell states apart. Besides clocks, ages and tokens.
    A task adds its own by `masks` in its metadata, one a line."""
    learn_masks: bool = False
    """Whether the start of a task is reset to and looked at twice at first: what differs is volatile from then on. Not for worlds whose
    resets do not repeat: what they draw would be masked."""
    clock: AtLeastZero = 0
    """Milliseconds for which the page's clock runs after each action, standing still otherwise, so that what moves moves alike each
    time. 0: it runs by itself."""
    sandbox: Literal["auto", "never", "required"] = "auto"
    """Whether browser and services are kept and forked as one world, in gVisor. auto: where this machine can and a task declares services,
    its site has hooks, or it is on a desktop; else states are reached by reset and replay. required: always, or the task fails."""
    snapshots: AtLeastZero = 4096
    """MiB of snapshots kept at most; the least recently used goes first."""
    speculation: Literal["rollback", "observe", "free"] = "rollback"
    """Writes while exploring. rollback: only where the world rolls back. observe: never, they are held back and done at a commit.
    free: everywhere, also where nothing undoes them; then one worker acts at a time."""


class Mount(Strict, frozen=True, kw_only=True):
    """A file or folder of this machine, seen inside a sandbox."""

    source: str
    target: str
    """Where it is seen: an absolute path. In this machine's `/` it must be there; in another root an empty place for it is made."""
    writable: bool = False
    """Whether it may be written to inside. What is written stays in the sandbox, and so in its snapshots."""


class SandboxConfig(Strict, frozen=True, kw_only=True):
    """What the applications in a sandbox run in, where they need more than this machine's files."""

    root: str = ""
    """Seen as `/`: a folder, or an image of a container in a tar archive (OCI layout, `docker save`, `docker export`). Empty: this
    machine's `/`, read-only under a memory overlay, with home directories masked."""
    mounts: tuple[Mount, ...] = ()
    env: dict[str, str] = {}
    """Added to the variables they have; of this machine's, only PATH, LANG and TZ pass."""
    user: str = ""
    """`uid` or `uid:gid`, as numbers; empty for root, which has no rights outside."""


class Config(Strict, frozen=True, kw_only=True):
    """A run's configuration."""

    name: str = "default"
    """In tables and in the names of run folders. Where a configuration gives none its agent is called `default`: what it leaves out are the
    defaults of this module, not those of a shipped file such as shells/configs/rmcts_builtin.yaml."""
    seed: int = 0
    search: SearchConfig = SearchConfig()
    policy: PolicyConfig = PolicyConfig()
    arms: tuple[PolicyConfig, ...] = ()
    """Further policies beside `policy`, which a search chooses among: for abmcts with `search.options.policies`."""
    value: ValueConfig = ValueConfig()
    reflection: ReflectionConfig = ReflectionConfig()
    models: ModelsConfig = ModelsConfig()
    limits: Limits = Limits()
    browser: BrowserConfig = BrowserConfig()
    sandbox: SandboxConfig = SandboxConfig()
    """Of the services that tasks declare; whether there is a sandbox says `browser.sandbox`."""
    prompts: str = ""
    """Folder of prompt templates that take the place of the package's, one by one."""


def load(path: Path | None, overrides: Iterable[str] = ()) -> Config:
    """The configuration in a YAML file with `key.path=value` overrides applied. Raises UsageError."""
    import yaml

    data: Any = {}
    if path is not None:
        try:
            data = yaml.safe_load(path.read_text("utf-8")) or {}
        except OSError as error:
            raise UsageError(
                f"cannot read configuration {path}: {error.strerror}: name a YAML file, such as shells/configs/rmcts_builtin.yaml"
            ) from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise UsageError(f"{path} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(data, dict):
        raise UsageError(f"{path} holds no mapping: write `section: {{key: value}}`")
    for override in overrides:
        key, found, value = override.partition("=")
        if not found:
            raise UsageError(f"--set {override}: write --set key=value")
        try:
            _set(data, key, yaml.safe_load(value))
        except yaml.YAMLError as error:
            raise UsageError(f"--set {override}: the value is not YAML: {' '.join(str(error).split())}") from error
    return parse(data)


def parse(data: Mapping[str, Any]) -> Config:
    """A configuration from plain data. Raises UsageError with the key that is wrong."""
    _check_keys(data, Config, "")
    try:
        return _judged(msgspec.convert(data, Config), data)
    except msgspec.ValidationError as error:
        raise UsageError(f"configuration: {error}") from error


def _judged(config: Config, data: Mapping[str, Any]) -> Config:
    """A language model's proposals are judged by a cascade of language models, where the configuration names no other judge."""
    value = data.get("value") or {}
    if config.policy.kind != "llm" or config.search.algorithm == "react" or (isinstance(value, Mapping) and "kind" in value):
        return config
    return msgspec.structs.replace(config, value=msgspec.structs.replace(config.value, kind="cascade"))


def dump(config: Config) -> str:
    """The configuration as YAML, every key written out."""
    import yaml

    return str(yaml.safe_dump(msgspec.to_builtins(config), sort_keys=False))


def _set(data: dict[str, Any], path: str, value: object) -> None:
    *sections, key = path.split(".")
    for section in sections:
        nested = data.get(section) or {}
        if not isinstance(nested, dict):
            raise UsageError(f"--set {path}: {section} has no keys below it")
        data[section] = nested
        data = nested
    data[key] = value


def _check_keys(data: object, section: type[msgspec.Struct], where: str) -> None:
    if not isinstance(data, Mapping):
        return
    types = {field.name: field.type for field in msgspec.structs.fields(section)}
    for key, value in data.items():
        if key not in types:
            raise unknown("configuration key", f"{where}{key}", [where + name for name in types])
        if isinstance(types[key], type) and issubclass(types[key], msgspec.Struct) and not isinstance(value, Mapping):
            raise _section(f"{where}{key}", types[key], [where + name for name in types if name != key])
        for kind in getattr(types[key], "__args__", (types[key],)):
            if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
                if get_origin(types[key]) is dict and isinstance(value, Mapping):
                    for name, part in value.items():
                        _check_keys(part, kind, f"{where}{key}.{name}.")
                else:
                    _check_keys(value, kind, f"{where}{key}.")


def _section(key: str, section: type[msgspec.Struct], beside: list[str]) -> UsageError:
    """For a value where a section belongs. `beside`: the keys that may have been meant."""
    near = difflib.get_close_matches(key, beside, n=1, cutoff=0.9)
    hint = f": or did you mean {near[0]!r}?" if near else ""
    return UsageError(f"configuration key {key!r} has keys of its own, such as {key}.{msgspec.structs.fields(section)[0].name}{hint}")
