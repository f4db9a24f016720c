"""Training data from runs: conversations, preferences, values, visit distributions and rollouts, made from journals.

`export` streams journals into one file. `masks` marks the tokens of a conversation that are trained on, and `replay` carries an exported
conversation out again in a fresh environment.
"""
