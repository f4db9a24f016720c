"""An environment whose step kills the server, in the middle of the answer."""

import os
import signal


class Dying:
    actions = [{"name": "go", "help": "Kill the server."}]

    def reset(self, task):
        return {"text": "alive"}

    def step(self, action):
        os.kill(os.getppid(), signal.SIGKILL)  # the environment has a process of its own

    def evaluate(self, outcome):
        return {"value": 0.0, "success": False}
