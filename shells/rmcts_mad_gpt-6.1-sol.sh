#!/usr/bin/env bash
# R-MCTS with multi-agent debate: GPT-6.1 Sol in all roles: costs money (see the configuration).
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" rmcts_mad_gpt-6.1-sol "$@"
