"""A certificate names addresses where the rest of its chain and its state may be had. They are requested at no time."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from exact.errors import EnvironmentFailure
from exact.task import Task

from .attack import KINDS, environments, require_sandbox
from .hostile import Answer, Attacker, Hostile, Trap, attacker

pytestmark = pytest.mark.asyncio(loop_scope="module")


def certificate(folder: Path, trap: Trap) -> Path:
    """Return a file with key and certificate of `localhost`, whose issuer nobody knows, and which says where to ask at the trap."""
    said = f"authorityInfoAccess=caIssuers;URI:http://127.0.0.1:{trap.port}/ca.crt,OCSP;URI:http://127.0.0.1:{trap.port}/ocsp"
    points = f"crlDistributionPoints=URI:http://127.0.0.1:{trap.port}/list.crl"
    (folder / "more.cnf").write_text(f"{said}\n{points}\nsubjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
    new = "openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes"
    for command in (
        f"{new} -x509 -days 2 -subj /CN=nobody -keyout ca.key -out ca.pem",
        f"{new} -subj /CN=localhost -keyout key.pem -out asked.csr",
        "openssl x509 -req -in asked.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile more.cnf -out only.pem",
    ):
        subprocess.run(command.split(), cwd=folder, check=True, capture_output=True)
    (folder / "both.pem").write_text((folder / "key.pem").read_text() + (folder / "only.pem").read_text())
    return folder / "both.pem"


@pytest.fixture
def site() -> Iterator[Attacker]:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl: apt-get install openssl")
    with attacker() as made:
        yield made


@pytest.fixture
def secure(site: Attacker, tmp_path: Path) -> Iterator[tuple[Hostile, Trap]]:
    """A site of the attacker with TLS, and the trap that its certificate names."""
    trap, server = site.traps.set(), Hostile()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(tmp_path, trap))
    server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield server, trap
    server.closing.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_that_a_certificate_names_is_requested(
    executable: str, site: Attacker, secure: tuple[Hostile, Trap], kind: str
) -> None:
    server, trap = secure
    there = f"https://localhost:{server.port}"
    site.own.answers["/"] = Answer(f"<iframe src={there}/></iframe><script>fetch('{there}/x').catch(() => 0)</script>".encode())
    if kind == "sandbox":
        require_sandbox()
    async with environments(kind) as factory, factory.open(simulation=False) as environment:
        await environment.reset(Task(id="hostile/tls", instruction="Look around.", start=site.start, origins=(there,)))
        with suppress(EnvironmentFailure):
            await environment.step(environment.actions.parse(f'goto "{there}/"'))
    assert trap.arrived == []
