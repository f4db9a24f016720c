#!/usr/bin/env bash
# R-MCTS with the built-in agent: no language model, no key, no cost.
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" rmcts_builtin "$@"
