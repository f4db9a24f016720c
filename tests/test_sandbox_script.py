"""shells/sandbox.sh, with stand-ins for runsc, apt and dpkg."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = ("bash", "awk", "cat", "chmod", "grep", "head", "mkdir", "mktemp", "mv", "rm", "sort", "tail", "uname")
OLD, NEW = "0.0~20221219.0", "0.0~20240729.0"
APT_GET = """#!/bin/bash
echo "apt-get $*" >>"$LOG"
case "$*" in
  indextargets*) printf '%s\\n' "$ARCHIVES" ;;
  *update*) for option in "$@"; do case "$option" in Dir::Etc::sourcelist=*) cat "${option#*=}" >>"$LOG" ;; esac; done ;;
  *download*) : >runsc_1_amd64.deb ;;
esac
"""
APT_CACHE = '#!/bin/bash\nprintf " runsc | %s | somewhere\\n" $VERSIONS\n'
DPKG = """#!/bin/bash
mkdir -p "$3/usr/bin"
printf '#!/bin/bash\\necho "runsc version %s"\\n' "${VERSIONS##* }" >"$3/usr/bin/runsc"
chmod +x "$3/usr/bin/runsc"
"""
ARCHIVES = "\n".join(
    (
        "Debian|http://mirror.example/debian/|bookworm|main",
        "Debian|http://mirror.example/debian/|bookworm-updates|main",
        "Debian|http://mirror.example/debian/|bookworm|contrib",
        "Somebody|http://other.example/|stable|main",
    )
)


class Place:
    """A PATH with a few tools, and a cache that is empty."""

    def __init__(self, folder: Path) -> None:
        self.path, self.cache, self.log = folder / "bin", folder / "cache", folder / "log"
        self.path.mkdir()
        for tool in TOOLS:
            (self.path / tool).symlink_to(shutil.which(tool) or tool)

    def put(self, name: str, text: str) -> Path:
        (self.path / name).write_text(text)
        (self.path / name).chmod(0o755)
        return self.path / name

    def run(self, **environment: str) -> subprocess.CompletedProcess[str]:
        full = {"PATH": str(self.path), "HOME": "/nowhere", "XDG_CACHE_HOME": str(self.cache), "LOG": str(self.log), "ARCHIVES": ARCHIVES}
        script = ROOT / "shells" / "sandbox.sh"
        return subprocess.run([self.path / "bash", script], env={**full, **environment}, capture_output=True, text=True)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.fixture
def debian(place: Place) -> Place:
    place.put("apt-get", APT_GET)
    place.put("apt-cache", APT_CACHE)
    place.put("dpkg", DPKG)
    return place


def tells(version: str) -> str:
    return f'#!/bin/bash\necho "runsc version {version}"\n'


def test_one_that_is_new_enough_is_taken_as_it_is(place: Place) -> None:
    path = place.put("runsc", tells(NEW))
    assert place.run().stdout == f"{path}\n"


def test_from_debian_it_comes_into_the_cache_once(debian: Place) -> None:
    debian.put("runsc", tells(OLD))
    for _ in range(2):
        done = debian.run(VERSIONS=f"{OLD} {NEW}")
        assert (done.returncode, done.stdout) == (0, f"{debian.cache}/exact/runsc\n"), done.stderr
    assert debian.log.read_text().count("download") == 1


def test_the_addresses_are_those_of_this_machines_own_archive(debian: Place) -> None:
    debian.run(VERSIONS=NEW)
    listed = [line for line in debian.log.read_text().splitlines() if line.startswith("deb ")]
    assert [line.split()[-3:] for line in listed] == [
        ["http://mirror.example/debian/", suite, "main"] for suite in ("bookworm", "bookworm-backports")
    ]


def test_where_debian_has_only_an_old_one_it_is_refused_by_name(debian: Place) -> None:
    done = debian.run(VERSIONS=OLD)
    assert done.returncode == 1 and OLD in done.stderr and "20240729" in done.stderr
    assert not (debian.cache / "exact" / "runsc").exists()


def test_without_apt_the_way_out_is_told(place: Place) -> None:
    done = place.run()
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert f"{place.cache}/exact/runsc" in done.stderr


def test_a_wrong_exact_runsc_is_named(place: Place) -> None:
    done = place.run(EXACT_RUNSC="/nowhere")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1) and "EXACT_RUNSC=/nowhere" in done.stderr
