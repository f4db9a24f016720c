"""Measure the README's two commands on a machine with Python and git only: a Debian made by debootstrap, and a fresh clone.

The machine is a folder of this one (`--work`), entered with its own root, mount and process namespaces. It gets the settings of this
machine that reach Debian's mirror and the package index: host names, certificates, pip's settings. Needs root and debootstrap (`apt-get
install debootstrap`), and downloads about 500 MB. The clone holds committed changes only.

    python bench/bare.py --json bench/results/bare.json     both commands: set-up, quickstart, all tests; about 20 minutes
    python bench/bare.py --quick                            the first command only, in a Debian that an earlier run made, if there is one
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from _common import ROOT, Figure, Noise, finish, lacks, parser, table, versions

SUITE = "bookworm"
HAS = "python3,git,ca-certificates"
COMMANDS = {"quickstart": "bash shells/quickstart.sh", "tests": "bash shells/test.sh"}
LIMITS = {"tests": 480.0}
"""Seconds that a command may take."""
GIVEN = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
INSIDE = """
mount --rbind /dev "$1/dev" && mount -t proc proc "$1/proc" || exit 1
exec chroot "$1" /bin/bash -c "cd /root/exact && $2" </dev/null
"""
SOLVED = re.compile(r"^(\d+) of (\d+) solved", re.MULTILINE)
COUNTED = re.compile(r"^=+ (.*) in [\d.]+s.*=+$", re.MULTILINE)


def made(machine: Path) -> None:
    """Make the machine with a fresh clone, unless it exists."""
    if not (machine / "usr/bin/git").exists():
        shutil.rmtree(machine, ignore_errors=True)
        print(f"making a Debian {SUITE} with {HAS} ...", flush=True)
        command = ["debootstrap", "--variant=minbase", f"--include={HAS}", SUITE, str(machine)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for path in map(Path, GIVEN):
        if path.exists():
            (machine / path.relative_to("/")).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, machine / path.relative_to("/"))
    clone = machine / "root" / "exact"
    shutil.rmtree(clone, ignore_errors=True)
    subprocess.run(["git", "clone", "-q", str(ROOT), str(clone)], check=True)


def entered(machine: Path, command: str) -> tuple[int, float, str]:
    """Run a command in the machine, and return its exit code, seconds and output. No process of it stays."""
    environ = {
        "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "LANG": "C.UTF-8",
        "PIP_CERT": GIVEN[-1],
        "SSL_CERT_FILE": GIVEN[-1],
    }
    began, said = time.perf_counter(), list[str]()
    unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", INSIDE, "sh", str(machine), command]
    with subprocess.Popen(unshare, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ) as process:
        assert process.stdout
        for line in process.stdout:
            said.append(line)
            print("  " + line, end="", flush=True)
    return process.returncode, time.perf_counter() - began, "".join(said)


def main() -> int:
    options = parser(__doc__ or "")
    options.add_argument("--work", type=Path, default=ROOT / ".bench" / "bare", help="where the machine lies")
    options.add_argument("--fresh", action="store_true", help="make it anew")
    args = options.parse_args()
    if os.geteuid() or not shutil.which("debootstrap"):
        lacks("bare: root and debootstrap are needed: apt-get install debootstrap, then run it with sudo")
    noise = Noise()
    if args.fresh:
        shutil.rmtree(args.work, ignore_errors=True)
    made(args.work)
    rows, figures = list[list[str]](), list[Figure]()
    for name, command in list(COMMANDS.items())[: 1 if args.quick else None]:
        noise.probe()
        code, seconds, said = entered(args.work, command)
        noise.probe()
        counted = SOLVED.search(said) if name == "quickstart" else COUNTED.search(said)
        rows.append([command, str(code), f"{seconds:.0f}", counted[0].strip("= ") if counted else ""])
        figures.append(Figure(f"bare_{name}_exit", code, 0, at_least=False))
        figures.append(Figure(f"bare_{name}_s", seconds, LIMITS.get(name), at_least=False))
    print()
    table(("command", "exit code", "seconds", "said"), rows)
    _, _, python = entered(args.work, ".venv/bin/python --version")
    finish(args, figures, noise, {**versions("exact-agent"), "machine": f"Debian {SUITE}", "python": python.strip()}, {"rows": rows})
    return int(any(not figure.met for figure in figures if figure.name.endswith("_exit")))


if __name__ == "__main__":
    sys.exit(main())
