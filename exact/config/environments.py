"""Browsers, and sandboxes of services."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from exact.config.strict import Amount, AtLeastOne, AtLeastZero, Strict


class GeolocationConfig(Strict, frozen=True, kw_only=True):
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


class RecordingConfig(Strict, frozen=True, kw_only=True):
    """Recorded traffic of sites: see docs/design/environments.md."""

    path: str = ""
    """A file of exchanges, scrubbed of credentials; empty: none."""
    mode: Literal["record", "replay"] = "record"
    """record: what is answered is written down too. replay: it is answered from there, and nobody is reached."""


class LoginConfig(Strict, frozen=True, kw_only=True):
    """How an environment logs in before a task begins. A value `$NAME` is that environment variable's; see docs/own_application.md."""

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
    log-in then; without one, or in the middle of a task, the environment is broken, which is never a score. Status 401 of a page says so
    too."""


class BrowserConfig(Strict, frozen=True, kw_only=True):
    """The browser environment. A task may set much of it its own way, in its metadata's `browser`: see
    environments/browser/task_config.py."""

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
    geolocation: GeolocationConfig | None = None
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
    """Folder in which Playwright's trace of each environment that acts for good is kept; empty: none. Traces hold all that a page holds."""
    recording: RecordingConfig = RecordingConfig()
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
    back, its scripts' state does not, and a fingerprint sees that only as far as it shows. Not in environments that fork: theirs are
    whole."""
    masks: tuple[str, ...] = ()
    """Regular expressions: what they match in names, values and addresses does not tell states apart. Besides clocks, ages and tokens.
    A task adds its own by `masks` in its metadata, one a line."""
    learn_masks: bool = False
    """Whether the start of a task is reset to and looked at twice at first: what differs is volatile from then on. Not for environments
    whose resets do not repeat: what they draw would be masked."""
    clock: AtLeastZero = 0
    """Milliseconds for which the page's clock runs after each action, standing still otherwise, so that what moves moves alike each
    time. 0: it runs by itself."""
    sandbox: Literal["auto", "never", "required"] = "auto"
    """Whether browser and services are kept and forked as one environment, in gVisor. auto: where this machine can and a task declares
    services,
    its site has hooks, or it is on a desktop; else states are reached by reset and replay. required: always, or the task fails."""
    snapshots: AtLeastZero = 4096
    """MiB of snapshots kept at most; the least recently used goes first."""
    speculation: Literal["rollback", "observe", "free"] = "rollback"
    """Writes while exploring. rollback: only where the environment rolls back. observe: never, they are held back and done at a commit.
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
