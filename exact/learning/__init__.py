"""Training data from runs: what journals hold as conversations, preferences, values, visit distributions and rollouts.

`export` streams journals into one file. `masks` marks the tokens of a conversation that are trained on, and `replay` carries an exported
conversation out again in a fresh environment.
"""
