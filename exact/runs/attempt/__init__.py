"""One attempt at a task: ask, execute, tell, commit, score. The loop is in attempt.py.

attempt.py            the loop
├─ workers.py         pieces of work in flight, viewers' commands, pauses
├─ executor.py        what a selection needs -> results, and the order in which they are told
│  ├─ agent_calls.py  evaluations, proposals, comparisons
│  ├─ rollout.py      the policy's own way from a state, and an evaluation of its end
│  └─ simulate.py     steps in simulated environments; slots.py lends them and prepares them ahead
├─ guide.py           the way of an earlier run: what comes next without a search, and the way back to it
├─ commit.py          decision -> committed action; live.py: the live environment, and actions rebound to it
├─ ending.py          when to stop, the agent's own evaluation, reflections, and what was expected against what was observed
└─ context.py         what all of them share; observations.py: tree path -> agent context, waypoints; memory.py, signal.py
"""
