"""A study of AgentLab's with an agent of exact, on MiniWoB++, offline. Runs in AgentLab's environment; EXACT_PYTHON names exact's.

Needs MINIWOB_URL, as BrowserGym does, and EXACT_BROWSER where Playwright has no browser of its own. AGENTLAB_EXP_ROOT is where the study
goes.
Run: `python examples/interop/agentlab_study.py 'miniwob.click-test*'`.
"""

import importlib
import os
import sys

import nltk

from exact.environments.adapters.guests.guest_parts import use_browser
from exact.interop.browsergym import ExactAgentArgs

nltk.download = lambda *names, **options: True  # BrowserGym's WebArena, which AgentLab imports, would download a model of sentences

if __name__ == "__main__":
    bgym, study = importlib.import_module("bgym"), importlib.import_module("agentlab.experiments.study")
    inspect_results = importlib.import_module("agentlab.analyze.inspect_results")
    if "EXACT_BROWSER" in os.environ:
        use_browser(os.environ["EXACT_BROWSER"])
    tasks = bgym.DEFAULT_BENCHMARKS["miniwob"](n_repeats=1).subset_from_glob("task_name", sys.argv[1])
    made = study.make_study(agent_args=[ExactAgentArgs(settings=tuple(sys.argv[2:]))], benchmark=tasks)
    made.run(n_jobs=1, parallel_backend="sequential", n_relaunch=1)
    results = inspect_results.load_result_df(made.dir, progress_fn=None).reset_index()
    for _, line in results.sort_values("env.task_name").iterrows():
        print(f"{line['env.task_name']}: reward {line['cum_reward']:g} after {line['n_steps']:g} steps{line['err_msg'] or ''}")
