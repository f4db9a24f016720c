"""BrowserGym's own loop with an agent of exact, on MiniWoB++, offline. Runs in BrowserGym's environment; EXACT_PYTHON names exact's.

Needs MINIWOB_URL, as BrowserGym does, and EXACT_BROWSER where Playwright has no browser of its own.
"""

import importlib
import os
import sys

import gymnasium

from exact.environments.adapters.guests.guest_parts import use_browser
from exact.interop.browsergym import ExactAgentArgs

importlib.import_module("browsergym.miniwob")  # registers the tasks
if "EXACT_BROWSER" in os.environ:
    use_browser(os.environ["EXACT_BROWSER"])
agent = ExactAgentArgs(settings=tuple(sys.argv[2:])).make_agent()
task = sys.argv[1] if len(sys.argv) > 1 else "click-test-2"
env = gymnasium.make(f"browsergym/miniwob.{task}", action_mapping=agent.action_set.to_python_code)
obs, _ = env.reset(seed=1)
score, over = 0.0, False
while not over:
    action, info = agent.get_action(agent.obs_preprocessor(obs))
    print(f"{action}: {info['think']}", file=sys.stderr)
    obs, reward, terminated, truncated, _ = env.step(action)
    score, over = max(score, float(reward > 0)), terminated or truncated
env.close()
agent.close()
print(f"score {score}")
