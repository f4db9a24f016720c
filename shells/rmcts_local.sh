#!/usr/bin/env bash
# R-MCTS with a model on a server of your own: llama.cpp unless set otherwise (see the configuration). It costs nothing.
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" rmcts_local "$@"
