#!/usr/bin/env bash
# R-MCTS with multi-agent debate: Claude Sonnet 5.5 in all roles, by the OpenAI-compatible endpoint: costs money (see the configuration).
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" rmcts_mad_claude-sonnet-5-5 "$@"
