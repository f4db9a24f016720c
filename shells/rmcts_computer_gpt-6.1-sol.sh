#!/usr/bin/env bash
# R-MCTS with multi-agent debate, acting with the computer tool of GPT-6.1 Sol by its native API: costs money (see the configuration).
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" rmcts_computer_gpt-6.1-sol "$@"
