#!/usr/bin/env bash
# R-MCTS with multi-agent debate, acting with the computer tool of Claude Sonnet 5.5 by its native API: costs money (see the configuration).
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" rmcts_computer_claude-sonnet-5-5 "$@"
