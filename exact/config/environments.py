"""Configuration of browsers, of tools beside them, and of sandboxes of services."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from exact.config.aliases import Amount, AtLeastOne, AtLeastZero, Strict
from exact.plugins import check_kind

MCP = "mcp"
"""Kind of the tools of an MCP server."""
TOOL_GROUP = "exact.tools"
"""Group of entry points. The object is a function."""


class GeolocationConfig(Strict, frozen=True, kw_only=True):
    """Geographical position that a browser reports."""

    latitude: Annotated[float, msgspec.Meta(ge=-90, le=90)]
    """Degrees, in [-90, 90]."""
    longitude: Annotated[float, msgspec.Meta(ge=-180, le=180)]
    """Degrees, in [-180, 180]."""


class ProxyConfig(Strict, frozen=True, kw_only=True):
    """Proxy between the browser and all sites. A value `$NAME` stands for an environment variable."""

    server: str = ""
    """`http://host:port` or `socks5://host:port`. Empty: the proxy of the system's environment variables, if any."""
    bypass: str = ""
    """Hosts that are reached without the proxy, separated by commas."""
    user: str = ""
    """User at the proxy."""
    password: str = ""
    """Password at the proxy."""


class CertificateConfig(Strict, frozen=True, kw_only=True):
    """Client certificate of a browser: PEM files of certificate and key, or one PKCS #12 file."""

    certificate: str = ""
    """PEM file of the certificate."""
    key: str = ""
    """PEM file of the certificate's private key."""
    pfx: str = ""
    """PKCS #12 file with certificate and key, in place of two PEM files."""
    passphrase: str = ""
    """Passphrase of the key or of the PKCS #12 file, or `$NAME` for an environment variable."""


class RecordingConfig(Strict, frozen=True, kw_only=True):
    """Recording of sites' traffic: see docs/design/environments.md."""

    path: str = ""
    """File of exchanges, without credentials. Empty: none."""
    mode: Literal["record", "replay"] = "record"
    """record: answers of servers are written to the file. replay: answers come from the file, and no server is reached."""


class LoginConfig(Strict, frozen=True, kw_only=True):
    """Log-in of an environment before a task begins. A value `$NAME` stands for an environment variable; see docs/own_application.md."""

    state: str = ""
    """File with cookies and storage, as written by `exact login`. A later log-in by `script` does not change it."""
    url: str = ""
    """Address at which `script` and `exact login` begin. Empty: the task's start."""
    script: tuple[str, ...] = ()
    """Actions, with elements named by role and name: `fill [textbox "User name"] "<user>"`."""
    secrets: dict[str, str] = {}
    """Values that `script` and agents fill in by placeholders: `<secret:password>`, or `<password>`. Agents, models and runs never see the
    values."""
    secret_origins: tuple[str, ...] = ()
    """Origins at which secrets may be typed: `https://host[:port]`. Empty: those of the task's start and of `url`."""
    partner_origins: tuple[str, ...] = ()
    """Origins to which the site's pages may send after a secret was typed, though it is not typed there, such as an API at another host."""
    headers: dict[str, str] = {}
    """Headers of each request to the task's origins, and to no other."""
    user: str = ""
    """User of basic authentication at the task's origins."""
    password: str = ""
    """Password of basic authentication."""
    certificate: CertificateConfig | None = None
    expired: str = ""
    """Regular expression of addresses that show an expired log-in; status 401 of a page shows it too."""
    proof: str = ""
    """Text or element (`[link "Log out"]`) that every page of the site shows while logged in, and none otherwise. The start page must show
    it. Once a page lacks it, and the start page too or a password is asked for or refused, the log-in has expired.

    `script`, or else `state`, renews an expired log-in: at a task's start and in the middle of it. If neither can, the environment has
    failed, which is never a score."""


class BrowserConfig(Strict, frozen=True, kw_only=True):
    """The browser environment. A site file or a task may override many of these keys."""

    headed: bool = False
    """Show the browser's window."""
    screenshots: bool = True
    """Take a screenshot of each state. Reports and prompts with images need it."""
    width: AtLeastOne = 1280
    """Width of the viewport in CSS pixels."""
    height: AtLeastOne = 720
    """Height of the viewport in CSS pixels."""
    scale: Annotated[float, msgspec.Meta(gt=0, le=8)] = 1.0
    """Screenshot pixels per CSS pixel, in (0, 8]."""
    locale: str = "en-US"
    """Language and region of the browser, as a BCP 47 tag."""
    timezone: str = "UTC"
    """Time zone of the browser, by its IANA name."""
    user_agent: str = ""
    """User agent. Empty: the browser's own."""
    contact: str = ""
    """Address or URL of the person who is responsible. With it the user agent tells site owners that an agent visits, and whom to ask:
    `Mozilla/5.0 (compatible; exact-agent/VERSION; +CONTACT)`, unless `user_agent` is set. Empty: none."""
    geolocation: GeolocationConfig | None = None
    """Position that the browser reports. None: none."""
    permissions: tuple[str, ...] = ()
    """Permissions of the task's origins, by Playwright's names: geolocation, clipboard-read, notifications, ..."""
    mask: tuple[str, ...] = ()
    """CSS selectors of elements that are redacted in screenshots and text before any use."""
    login: LoginConfig = LoginConfig()
    html: bool = False
    """Observe the page's HTML too, shortened, with the ids of the elements."""
    dialogs: Literal["ask", "accept", "dismiss"] = "ask"
    """Handling of a page's dialogs. ask: the agent sees and answers them."""
    download_bytes: AtLeastZero = 50_000_000
    """Largest file that is downloaded, in bytes."""
    document_bytes: AtLeastOne = 20_000_000
    """Largest document that is opened, in bytes once decompressed. A navigation to a larger one fails, and the page before stays."""
    traces: str = ""
    """Folder of Playwright traces of live environments. Traces contain everything that a page contains. The suite
    `webarena_verified` also writes the answer and the HAR of each attempt there. Empty: none."""
    recording: RecordingConfig = RecordingConfig()
    proxy: ProxyConfig = ProxyConfig()
    authorities: tuple[str, ...] = ()
    """PEM files of further certificate authorities that sign the task's sites."""
    settle_seconds: Amount = 3.0
    """Most seconds to wait for a page to become quiet after an action or a reset, once its document is there. A cause that kept it busy is
    not waited for again."""
    start_seconds: Amount = 15.0
    """Most seconds to wait until a start page, and a page that is restored, shows something: text, a control, a painted picture or canvas.
    A page that stays blank is handed over with a note. The proof of a log-in has as long to appear."""
    answer_seconds: Amount = 15.0
    """Most seconds to wait for a server to answer a navigation. Then loading is stopped, and the page before stays. An evaluator waits
    as long for a whole document: one that is still loading then is a failure of the environment, and no score."""
    allow_origins: tuple[str, ...] = ()
    """Further origins, such as `https://login.example.org`, to which pages and agents may navigate beside the task's own."""
    deny: tuple[str, ...] = ()
    """Never reached, even if allowed: origins (`https://pay.example`), hosts (`pay.example`, `*.ads.example`), addresses and networks
    (`10.0.0.0/8`)."""
    page_snapshots: bool = False
    """Restore pages from snapshots if that is cheaper than a replay. Fields, storage, focus and scroll are restored; the state of scripts
    is not, and a fingerprint detects this only if it shows. Environments that fork do not use them: their snapshots are complete."""
    masks: tuple[str, ...] = ()
    """Regular expressions of text in names, values and addresses that does not distinguish states, beside clocks, ages and tokens. A task
    adds its own in its metadata's `masks`, one a line."""
    learn_masks: bool = False
    """Reset a task twice at first, and treat the differences as volatile. Not for environments with random resets, whose content would be
    masked."""
    clock: AtLeastZero = 0
    """Milliseconds that the page's clock runs after each action; otherwise it is stopped, so that animations repeat exactly. 0: the clock
    runs by itself."""
    sandbox: Literal["auto", "never", "required"] = "auto"
    """Run browser and services as one forkable environment in gVisor. auto: if this machine supports it and a task declares services, has a
    site outside, or is on a desktop; else states are reached by reset and replay. required: always, or the task fails."""
    snapshots: AtLeastZero = 4096
    """Most MiB of snapshots. The least recently used are deleted first."""
    cdp_url: str = ""
    """Address of the DevTools of a running browser, one's own or a hosted one: `http://127.0.0.1:9222`, `wss://...`, or `$NAME` for an
    environment variable. It is not closed, and its tabs stay as they are. No wall stands around it. Empty: exact starts a browser."""
    profile: str = ""
    """Folder of a profile of your own Chromium or Chrome. Environments have its log-ins at the task's origins: cookies and storage are read
    from a copy, which is deleted. Empty: none."""
    device: str = ""
    """Device to emulate, by Playwright's name: iPhone 15, Pixel 7, ... It sets width, height, scale and user agent. Empty: none."""
    speculation: Literal["rollback", "observe", "free"] = "rollback"
    """Writes in search. rollback: only if the environment rolls back. observe: never; they are blocked, and sent at a commit. free:
    everywhere, even if nothing undoes them; then one worker acts at a time. See docs/security.md for the requests that are presumed to
    write."""
    confirm: Literal["never", "writes", "always"] = "never"
    """Things that a person confirms before they are committed: nothing, each request that writes, or each action and each request that
    writes. Without a yes in `person_seconds` they are not done."""
    confirm_marked: bool = False
    """Ask a person before each action that is committed in a state whose observation the detector of injections marked."""
    requests_per_minute: AtLeastOne | None = None
    """Requests a minute to each origin outside the sandbox, of all environments together. Further ones wait. None: any number."""
    pages: AtLeastOne | None = None
    """Pages that the simulations of one attempt open at each origin outside the sandbox. When they are used up, an action that would open
    another one is not simulated; actions are still committed. None: any number."""
    ask_user: bool = False
    """Give agents the action `ask_user`, a question to the person who watches."""
    person_seconds: Amount = 300.0
    """Seconds that a person has for an answer."""

    def __post_init__(self) -> None:
        """Raise ValueError if the settings do not fit a running browser or a profile."""
        named = [name for name in ("cdp_url", "profile") if getattr(self, name)]
        if len(named) == 2:
            raise ValueError("cdp_url and profile exclude each other: a running browser has its own profile")
        for name in named:
            if self.speculation == "free":
                raise ValueError(f"{name} is somebody's own browser, in which search sends no writes: set speculation to observe")
            if self.sandbox == "required":
                raise ValueError(f"{name} cannot be used in a sandbox: leave sandbox: required out")
        if self.cdp_url and self.proxy != ProxyConfig():
            raise ValueError("cdp_url is a running browser, which cannot be given a proxy: set it in that browser")
        if self.cdp_url and not self.cdp_url.startswith(("http://", "https://", "ws://", "wss://", "$", "<secret:")):
            raise ValueError(f"invalid cdp_url {self.cdp_url!r}: write http://127.0.0.1:9222, wss://... or $NAME")

    @property
    def never_writes(self) -> bool:
        """Whether a search never sends writes: under `observe`, or with a person's own log-in."""
        return self.speculation == "observe" or bool(self.cdp_url or self.profile)


class ToolConfig(Strict, frozen=True, kw_only=True):
    """A tool of the user's, or an MCP server with all its tools: actions beside those of the environment. See docs/tools.md."""

    kind: str = MCP
    """`module:function`, `file.py:function`, or a name in the entry points `exact.tools`: a function. mcp: the tools of a server, all of
    which write unless `reads` names them."""
    command: tuple[str, ...] = ()
    """mcp: program of the server, and its arguments. It runs with your rights, and sees few variables beside those in `env`."""
    url: str = ""
    """mcp: address of a server that runs elsewhere, in place of `command`."""
    env: dict[str, str] = {}
    """mcp: further environment variables of the program. A value `$NAME` stands for an environment variable."""
    headers: dict[str, str] = {}
    """mcp: headers of each request to `url`. A value `$NAME` stands for an environment variable."""
    reads: tuple[str, ...] = ()
    """mcp: names of tools that change nothing, so that a search may call them. What the server says of them is not relied on."""
    prefix: str = ""
    """mcp: beginning of the names of the tools, where two servers have one of the same name."""
    confirm: bool = False
    """mcp: ask a person before each call of a tool that writes."""
    seconds: Annotated[float, msgspec.Meta(gt=0)] = 30.0
    """mcp: seconds that a call may take."""

    def __post_init__(self) -> None:
        """Raise ValueError for a kind that is not known, and for keys that do not fit it."""
        check_kind("tools.kind", self.kind, (MCP,), TOOL_GROUP)
        if self.kind != MCP:
            others = (self.command, self.url, self.env, self.headers, self.reads, self.prefix, self.confirm)
            if any(others):
                raise ValueError(f"tools: {self.kind} is a function, which has no keys beside kind: its decorator says the rest")
        elif bool(self.command) == bool(self.url):
            raise ValueError("tools: an MCP server has either a command or a url: write command: [program, argument]")
        elif self.url and not self.url.startswith(("http://", "https://")):
            raise ValueError(f"tools: invalid url {self.url!r}: write http://host/mcp")


class Mount(Strict, frozen=True, kw_only=True):
    """File or folder of this machine, mounted in a sandbox."""

    source: str
    """Path on this machine."""
    target: str
    """Absolute path in the sandbox. It must exist in this machine's `/`; in another root it is created."""
    writable: bool = False
    """Allow writes. They stay in the sandbox, and so in its snapshots."""


class SandboxConfig(Strict, frozen=True, kw_only=True):
    """Files, variables and user of the applications in a sandbox."""

    root: str = ""
    """Root file system: a folder, or a container image in a tar archive (OCI layout, `docker save`, `docker export`). Empty: this machine's
    `/`, read-only under a memory overlay, without data: home directories, `/var`, `/opt`, `/srv`, other folders at the top, and files in
    `/etc` that only root reads or that hold credentials are masked."""
    mounts: tuple[Mount, ...] = ()
    env: dict[str, str] = {}
    """Additional environment variables. Of this machine's, only PATH, LANG and TZ are passed on."""
    user: str = ""
    """`uid` or `uid:gid`, as numbers. Empty: root, which has no rights outside."""
    processes: AtLeastOne = 4096
    """Most processes and threads of one sandbox at a time. A further one is not started."""
    memory_bytes: AtLeastOne = 8 << 30
    """Most bytes of memory of one sandbox, the files that it wrote included. One that takes more is killed: its environment has failed."""
