#!/usr/bin/env bash
# R-MCTS with GPT-4o as policy, judge by rubrics, and reflector: costs money (see the configuration).
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" rmcts_gpt-4o "$@"
