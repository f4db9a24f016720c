#!/usr/bin/env bash
# R-MCTS with GPT-4o, judged by the probability of one token: costs money (see the configuration).
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" rmcts_logprob_gpt-4o "$@"
