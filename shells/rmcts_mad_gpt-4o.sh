#!/usr/bin/env bash
# R-MCTS with multi-agent debate: GPT-4o as policy, debaters, judge and reflector: costs money (see the configuration).
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" rmcts_mad_gpt-4o "$@"
