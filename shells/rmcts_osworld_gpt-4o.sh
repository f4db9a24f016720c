#!/usr/bin/env bash
# R-MCTS on OSWorld: GPT-4o as policy, debaters, judge and reflector: costs money (see the configuration).
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" rmcts_osworld_gpt-4o "$@"
