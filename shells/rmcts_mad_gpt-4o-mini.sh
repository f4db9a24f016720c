#!/usr/bin/env bash
# R-MCTS with multi-agent debate: GPT-4o mini in all roles: costs money (see the configuration).
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" rmcts_mad_gpt-4o-mini "$@"
