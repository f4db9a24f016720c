"""An environment that does not import `exact`: one class with plain data, for any Python from 3.9.

A switch toggles its own lamp of a row and the neighbouring lamps. The goal is to turn all lamps on.
"""


class Lights:
    actions = [{"name": "press", "form": ["[id]"], "help": "Press the switch of a lamp."}]

    def __init__(self, lamps=5):
        self.lamps = lamps

    def reset(self, task):
        self.on = [False] * self.lamps
        return self.seen()

    def step(self, action):
        lamp = int(action["args"][0])
        if not 0 <= lamp < self.lamps:
            raise ActionError(f"there is no lamp {lamp}")
        for i in range(max(0, lamp - 1), min(self.lamps, lamp + 2)):
            self.on[i] = not self.on[i]
        print("pressed", lamp)  # goes to the log
        return {"observation": None if all(self.on) else self.seen(), "terminated": all(self.on)}

    def evaluate(self, outcome):
        return {"value": sum(self.on) / self.lamps, "success": all(self.on)}

    def seen(self):
        names = [f"lamp {i} is {'on' if on else 'off'}" for i, on in enumerate(self.on)]
        elements = [{"id": str(i), "role": "switch", "name": name} for i, name in enumerate(names)]
        return {"text": "\n".join(f"[{i}] switch {name!r}" for i, name in enumerate(names)), "elements": elements}


class ActionError(Exception):
    """Raised for an invalid action that changed nothing. It is recognised by its name."""
