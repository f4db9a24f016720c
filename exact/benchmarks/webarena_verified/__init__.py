"""The benchmark WebArena-Verified: WebArena's tasks, revised, which its own evaluators score by the answer and the traffic."""
