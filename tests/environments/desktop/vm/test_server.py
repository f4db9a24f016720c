"""OSWorld's interface of a machine, served by a real desktop with a text editor."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import http.client
import json
import socket
import struct
import threading
import urllib.parse
import xml.etree.ElementTree as ET
from collections.abc import AsyncIterator
from http.server import ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from exact.environments.desktop.factory import desktop_factory
from exact.environments.desktop.vm.document import NAMESPACES, terminal_text
from exact.environments.desktop.vm.server import _Handler, read_request

from ..applications import EDITOR, desktop_task

pytestmark = pytest.mark.asyncio(loop_scope="module")
PROGRAM = "import pyautogui; import time; pyautogui.FAILSAFE = False; "


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Answer(NamedTuple):
    status: int
    content: bytes

    @property
    def text(self) -> str:
        return self.content.decode()

    def json(self) -> Any:
        return json.loads(self.content)


class Vm:
    """A client that asks as desktop_env's controllers do."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def ask(self, method: str, path: str, body: bytes = b"", kind: str = "application/json") -> Answer:
        def asked() -> Answer:
            line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
            with contextlib.closing(line):
                line.request(method, path, body, {"Content-Type": kind})
                answer = line.getresponse()
                return Answer(answer.status, answer.read())

        return await asyncio.to_thread(asked)

    async def get(self, path: str) -> Answer:
        return await self.ask("GET", path)

    async def post(self, where: str, **given: Any) -> Answer:
        return await self.ask("POST", where, json.dumps(given).encode())

    async def form(self, path: str, **given: str) -> Answer:
        return await self.ask("POST", path, urllib.parse.urlencode(given).encode(), "application/x-www-form-urlencoded")

    async def upload(self, path: str, content: bytes) -> Answer:
        head = b'--=b\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n'
        parts = [head % (b"file_path", b""), path.encode(), b"\r\n", head % (b"file_data", b'; filename="f"'), content, b"\r\n--=b--\r\n"]
        return await self.ask("POST", "/setup/upload", b"".join(parts), 'multipart/form-data; boundary="=b"')

    async def run(self, *command: str) -> dict[str, Any]:
        answer: dict[str, Any] = (await self.post("/execute", command=command, shell=False)).json()
        return answer

    async def raw(self, request: str) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request.encode())
        async with asyncio.timeout(10):
            answer = await reader.read()
        writer.close()
        return answer

    async def tree(self) -> ET.Element:
        return ET.fromstring((await self.get("/accessibility")).json()["AT"])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def vm(has_desktop: None) -> AsyncIterator[Vm]:
    port = free_port()
    async with desktop_factory(vm_port=port) as environments, environments.open(simulation=True) as environment:
        await environment.reset(desktop_task(EDITOR))
        yield Vm(port)


async def test_the_screen_and_its_size(vm: Vm) -> None:
    picture = await vm.get("/screenshot")
    assert struct.unpack(">II", picture.content[16:24]) == (1280, 800)
    assert (await vm.post("/screen_size")).json() == {"width": 1280, "height": 800}
    assert (await vm.post("/window_size", app_class_name="absent")).json() is None
    assert (await vm.form("/window_size", app_class_name="Mousepad")).json()["width"] > 100


@pytest.mark.parametrize("header", ["Origin: http://127.0.0.1:5000", "Origin: null", "Sec-Fetch-Site: same-origin"])
async def test_a_page_in_the_desktops_browser_runs_nothing(vm: Vm, header: str) -> None:
    body = json.dumps({"command": ["touch", "/tmp/by-a-page"], "shell": False})
    head = ("POST /execute HTTP/1.1", "Host: 127.0.0.1:5000", header, "Content-Type: text/plain", f"Content-Length: {len(body)}")
    assert (await vm.raw("\r\n".join((*head, "", body)))).startswith(b"HTTP/1.1 403")
    assert (await vm.run("ls", "/tmp/by-a-page"))["returncode"] != 0


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("Host: 127.0.0.1:5000", 404), ("Host: localhost", 404), ("Host: evil.test:5000", 403), ("Host: 127.0.0.1.evil.test", 403),
        ("X: y", 403), ("Host: localhost\r\nHost: evil.test", 403),
    ],
)  # fmt: skip
async def test_a_page_whose_name_leads_to_the_desktop_reads_nothing(host: str, status: int) -> None:
    handler = type("Handler", (_Handler,), {"routes": {}})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        threading.Thread(target=serving.handle_request, daemon=True).start()
        with socket.create_connection(serving.server_address[:2], timeout=10) as connection:  # the thread answers
            connection.sendall(f"GET /screenshot HTTP/1.1\r\n{host}\r\nConnection: close\r\n\r\n".encode())
            assert connection.recv(100).startswith(f"HTTP/1.1 {status}".encode())


async def test_the_tree_has_roles_as_tags_and_states_boxes_and_texts(vm: Vm) -> None:
    root = await vm.tree()
    assert root.tag == "desktop-frame"
    (application,) = [each for each in root if each.get("name") == "mousepad"]
    frame = application[0]
    assert (frame.tag, frame.get(f"{{{NAMESPACES['st']}}}showing")) == ("frame", "true")
    (text,) = [each for each in frame.iter("text") if each.text]
    assert text.text == "one\ntwo\n"
    menu = next(each for each in frame.iter("menu") if each.get("name") == "File")
    x, y = ast.literal_eval(str(menu.get(f"{{{NAMESPACES['cp']}}}screencoord")))
    width, height = ast.literal_eval(str(menu.get(f"{{{NAMESPACES['cp']}}}size")))
    assert 0 <= x < 1280 and 0 <= y < 800 and width > 5 and height > 5
    assert any(name.startswith(f"{{{NAMESPACES['act']}}}") for name in menu.attrib)


async def test_programs_of_pyautogui_are_input_events_and_nothing_else(vm: Vm) -> None:
    menu = next(each for each in (await vm.tree()).iter("text") if each.text)
    x, y = ast.literal_eval(str(menu.get(f"{{{NAMESPACES['cp']}}}screencoord")))
    done = await vm.run(
        "python", "-c", f"{PROGRAM}pyautogui.click({x + 30}, {y + 30}); pyautogui.hotkey('ctrl', 'a'); pyautogui.write('<hi>')"
    )
    assert done["returncode"] == 0, done
    assert next(each.text for each in (await vm.tree()).iter("text") if each.text) == "<hi>"
    assert (await vm.get("/cursor_position")).json() == [x + 30, y + 30]
    refused = await vm.post("/execute", command=["python", "-c", f"{PROGRAM}open('/tmp/exact-was-here', 'w')"])
    assert refused.status == 500
    assert "`open` is not allowed" in refused.json()["message"]
    probe = await vm.run("python", "-c", f"{PROGRAM}import platform; print(platform.system())")
    assert probe["output"] == "Linux\n"
    assert (await vm.get("/platform")).text == "Linux"


async def test_commands_run_in_the_session_of_the_desktop(vm: Vm) -> None:
    assert (await vm.run("sh", "-c", "echo $DISPLAY; cat note.txt"))["output"].endswith("one\ntwo\n")
    said = (await vm.post("/setup/execute", command="echo ~ && false", shell=True)).json()
    assert (said["status"], said["returncode"]) == ("success", 1)
    assert (await vm.run("cat", "~/note.txt"))["output"] == "one\ntwo\n"
    assert (await vm.post("/execute", command=["absent-program"])).status == 500
    script = (await vm.post("/run_bash_script", script="cd /; exit 3", timeout=5)).json()
    assert (script["status"], script["returncode"]) == ("error", 3)
    assert (await vm.post("/run_python", code="print(6 * 7)")).json()["output"] == "42\n"
    late = await vm.post("/run_bash_script", script="sleep 5", timeout=0.2)
    assert late.status == 500
    checked = {"verification": {"window_exists": "note.txt", "command_success": "true"}, "max_wait_time": 2}
    assert (await vm.post("/setup/execute_with_verification", command=["true"], **checked)).json()["verification"] == "passed"
    failing = {"verification": {"window_exists": "absent"}, "max_wait_time": 0.2}
    assert (await vm.post("/setup/execute_with_verification", command=["true"], **failing)).status == 500


async def test_files_go_in_and_out(vm: Vm) -> None:
    content = bytes(range(256)) * 10
    sent = await vm.upload("~/Desktop/a b.bin", content)
    assert sent.status == 200
    assert (await vm.form("/file", file_path="$HOME/Desktop/a b.bin")).content == content
    assert (await vm.form("/file", file_path="~/absent")).status == 404
    assert (await vm.form("/file")).status == 400
    folder = (await vm.post("/desktop_path")).json()["desktop_path"]
    tree = (await vm.post("/list_directory", path=folder)).json()["directory_tree"]
    assert tree == {"type": "directory", "name": "Desktop", "children": [{"type": "file", "name": "a b.bin"}]}
    assert (await vm.post("/setup/download_file", url="http://localhost/", path="~/x")).status == 500


async def test_applications_are_launched_and_windows_activated_and_closed(vm: Vm) -> None:
    await vm.run("touch", "other.txt")
    assert (await vm.post("/setup/launch", command=["mousepad", "--disable-server", "~/other.txt"])).status == 200
    appeared = {"verification": {"window_exists": "other.txt"}, "max_wait_time": 20}
    assert (await vm.post("/setup/execute_with_verification", command=["true"], **appeared)).status == 200
    assert (await vm.post("/setup/activate_window", window_name="NOTE.TXT")).status == 200
    assert (await vm.post("/setup/activate_window", window_name="NOTE.TXT", strict=True)).status == 404
    assert (await vm.post("/setup/activate_window", window_name="mousepad.Mousepad", by_class=True, strict=True)).status == 200
    assert (await vm.post("/setup/close_window", window_name="other.txt")).status == 200
    gone = {"verification": {"command_success": "! ps -eo args | grep -q '[o]ther.txt'"}, "max_wait_time": 20}
    assert (await vm.post("/setup/execute_with_verification", command=["true"], **gone)).status == 200
    assert (await vm.post("/setup/open_file", path="absent")).status == 404
    assert (await vm.post("/setup/activate_window")).status == 400


async def test_what_is_not_served_or_cannot_be_read_is_said(vm: Vm) -> None:
    assert (await vm.get("/absent")).status == 404
    assert (await vm.ask("POST", "/execute", b"{")).status == 400
    assert (await vm.ask("POST", "/execute", b"[1]")).status == 400
    for length in ("-1", "many", "9" * 12):
        answer = await vm.raw(f"POST /execute HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 413")
    assert (await vm.get("/terminal")).json() == {"output": None, "status": "success"}
    assert (await vm.post("/end_recording")).status == 400


async def test_the_text_of_the_terminal_in_front_is_found() -> None:
    xml = (
        f'<desktop-frame xmlns:st="{NAMESPACES["st"]}"><application><frame st:active="true">'
        '<terminal st:focused="true">$ ls\nfile  \n\n</terminal></frame></application></desktop-frame>'
    )
    assert terminal_text(xml) == "$ ls\nfile"
    assert terminal_text(xml.replace('st:active="true"', "")) is None


async def test_a_form_is_read_as_one_of_json_is() -> None:
    assert read_request("application/x-www-form-urlencoded", b"file_path=%7E%2Fa+b").fields == {"file_path": "~/a b"}
    assert read_request("application/json", b"").fields == {}
    boundary = b'--x\r\nContent-Disposition: form-data; name="file_data"; filename="f"\r\n\r\n\x00\xff\r\n--x--\r\n'
    assert read_request("multipart/form-data; boundary=x", boundary).files == {"file_data": b"\x00\xff"}
