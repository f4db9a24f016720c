#!/usr/bin/env bash
# R-MCTS with multi-agent debate: GPT-4o at Azure in all roles; `provider: azure_token` takes a token instead of a key: costs money (see the configuration).
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" rmcts_mad_azure_gpt-4o "$@"
