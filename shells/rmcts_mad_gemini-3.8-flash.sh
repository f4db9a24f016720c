#!/usr/bin/env bash
# R-MCTS with multi-agent debate: Gemini 3.8 Flash in all roles, by the OpenAI-compatible endpoint: costs money (see the configuration).
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" rmcts_mad_gemini-3.8-flash "$@"
