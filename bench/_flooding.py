"""Serve one flood of bench/neighbours.py and a quiet page, in a process of its own: `_flooding.py NAME`.

It prints addresses as JSON, then a line when the flood begins, and serves until its input ends.
"""

from __future__ import annotations

import json
import sys
import threading
import time

from _common import ROOT

sys.path.insert(0, str(ROOT))

from tests.gate.attacks_neighbours import ATTACKS as NEIGHBOURS
from tests.gate.attacks_neighbours import every, heavy
from tests.gate.attacks_resources import ATTACKS as RESOURCES
from tests.gate.neighbour import QUIET, begun
from tests.gate.sites import NAMES, Reply, sites

LARGE = b"data: " + b"y" * 250_000 + b"\n\n"
OWN = (
    heavy(
        "frames_churned",
        every("const f = document.createElement('iframe'); box.append(f); if (box.children.length > 6) box.firstChild.remove()"),
    ),
    heavy("console_of_long_lines", every("console.log('e'.repeat(2e6) + Math.random())", 3)),
    heavy(
        "stream_of_long_messages", "for (let n = 0; n < 5; n++) new EventSource('/@name/events?' + n)",
        files={"events": Reply(LARGE, headers=(("Content-Type", "text/event-stream"),), endless=LARGE)},
    ),
    heavy("states_of_large_entries", every("history.pushState('a'.repeat(5e6) + Math.random(), '', '#' + Math.random())", 3)),
    heavy("names_of_large_frames", every("window.name = 'a'.repeat(5e6) + Math.random()", 3)),
    heavy("addresses_of_long_frames", every("history.pushState(0, '', '#' + 'a'.repeat(1e6) + Math.random())", 3)),
)  # fmt: skip
"""Floods of this bench alone."""
FLOODS = {each.name: each for each in (*OWN, *NEIGHBOURS, *RESOURCES)}


def main() -> None:
    from tests.gate.attack import put

    attack, over = FLOODS[sys.argv[1]], threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set()), daemon=True).start()
    with sites() as made:
        addresses = {"quiet": put(QUIET, made), "start": put(attack, made), "origins": [made.origins[name] for name in NAMES[1:]]}
        print(json.dumps(addresses), flush=True)
        told = False
        while not over.is_set():
            if not told and begun(attack, made):
                print("begun", flush=True)
                told = True
            time.sleep(0.02)


if __name__ == "__main__":
    main()
