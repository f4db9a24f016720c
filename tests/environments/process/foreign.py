"""An environment as others write them: sync, plain data, nothing of exact, any Python from 3.9 on."""

# ruff: noqa: T201, PTH102, PTH110, PTH118, PTH123

import os
import signal
import subprocess
import sys
import tempfile
import time


class ActionError(Exception):
    pass


class Counter:
    """Counts; misbehaves on demand."""

    actions = [
        {"name": "add", "form": ["number"], "help": "Add to the count."},
        {"name": "do", "form": ['"text"'], "help": "Misbehave."},
    ]

    def __init__(self, first=0, simulation=False):
        self.first, self.count, self.simulation = first, None, simulation

    def reset(self, task):
        self.count = self.first + task["seed"]
        return self.seen()

    def step(self, action):
        if action["name"] == "add":
            if action["args"][0] < 0:
                raise ActionError("only upwards:\nadd a number that is not negative")
            self.count += int(action["args"][0])
            return {"observation": self.seen(), "info": {"simulation": str(self.simulation)}}
        return getattr(self, action["args"][0])()

    def snapshot(self):
        return {"id": str(self.count), "fidelity": "full", "fingerprint": f"{self.count:x}"}

    def restore(self, snapshot):
        self.count = int(snapshot["id"])
        return self.seen()

    def evaluate(self, outcome):
        return {"value": 1.0, "success": True, "reason": " ".join(outcome["actions"])}

    def seen(self):
        return {"text": f'[1] StaticText "{self.count}"', "elements": [{"id": "1", "role": "StaticText", "box": [0, 1, 2, 3]}]}

    def noise(self):
        print("noise from print")
        os.write(1, b"noise from the descriptor\n")
        subprocess.run(["echo", "noise from a child"], check=True)
        assert sys.stdin.read() == ""
        return {"observation": self.seen()}

    def picture(self):
        return {"observation": {**self.seen(), "screenshot": bytes(range(256)) * (20 * 4096)}}

    def surrogate(self):
        return {"observation": {"text": "half \ud83d of a pair"}}

    def modules(self):
        return {"observation": self.seen(), "info": {"prefix": sys.prefix, "exact": str("exact" in sys.modules)}}

    def work(self):
        end = time.process_time() + 0.1
        while time.process_time() < end:
            pass
        return {"observation": self.seen()}

    def nonsense(self):
        return {"observation": {"text": 7}}

    def thing(self):
        return {"observation": {"text": object()}}

    def fail(self):
        raise KeyError("what is missing")

    def hang(self):
        time.sleep(600)

    def wait_for_file(self):
        while not os.path.exists(os.environ["GATE"]):
            time.sleep(0.01)
        self.count += 1
        return {"observation": self.seen()}

    def exit(self):
        sys.exit(3)

    def crash(self):
        print("last words", file=sys.stderr)
        os._exit(3)

    def kill(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def litter(self):
        os.mkdir(os.path.join(tempfile.mkdtemp(), "left"))
        return {"observation": self.seen()}

    def child(self):
        """Start a child in another session, which outlives its parent unless it is ended."""
        child = subprocess.Popen(["sleep", "600"], start_new_session=True)
        return {"observation": self.seen(), "info": {"pid": str(child.pid)}}


class Awaiting(Counter):
    async def step(self, action):
        import asyncio

        await asyncio.sleep(0)
        return Counter.step(self, action)


class Confused(Counter):
    """`step` is not `async def`, and gives something to await."""

    def step(self, action):
        return Awaiting.step(self, action)


def broken():
    raise ValueError("no such shop")


async def later():
    return Awaiting(7)


def crashes():
    os._exit(4)


class Observing(Counter):
    def observe(self):
        return {"text": f"observed {self.count}"}


class Writing(Counter):
    """Each step adds a line to a file."""

    def seen(self):
        try:
            with open("/tmp/lines") as file:
                return {"text": f'now "{len(file.readlines())} lines"'}
        except OSError:
            return {"text": "nothing yet"}

    def step(self, action):
        with open("/tmp/lines", "a") as file:
            file.write("x\n" * max(1, int(action["args"][0])))
        return {"observation": self.seen()}


class Old(Counter):
    """Written for an earlier version: other names of an argument, a capability and a fidelity."""

    capabilities = {"fidelity": "world", "sealed": True}

    def __init__(self, first=0, speculative=False):
        super().__init__(first, simulation=speculative)

    def snapshot(self):
        return {**super().snapshot(), "fidelity": "world"}
