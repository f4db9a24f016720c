"""TreeQuest's standard MCTS in a separate process. Runs in TreeQuest's virtual environment; imports nothing of exact.

Argument: branching. A number of steps on each line of stdin; for each a line on stdout: `{"seconds": s}`. A step there makes one child;
states have as many as the game has actions.
"""

from __future__ import annotations

import json
import sys
import time

import treequest
from _synthetic import Game


def main() -> None:
    game = Game(branching=int(sys.argv[1]), depth=10**9)
    actions = [str(action) for action, _ in game.priors]
    for line in sys.stdin:
        algorithm = treequest.StandardMCTS(samples_per_action=1)
        state = algorithm.init_tree()
        start = time.perf_counter()
        for _ in range(int(line)):
            state, trial = algorithm.ask(state, actions)
            parent = state.tree.get_node(trial.node_to_expand).state
            child = game.child(1 if parent is None else parent, int(trial.action))
            state = algorithm.tell(state, trial.trial_id, (child, game.value(child)))
        print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)


if __name__ == "__main__":
    main()
