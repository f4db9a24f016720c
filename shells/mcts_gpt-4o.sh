#!/usr/bin/env bash
# MCTS with GPT-4o, judged by rubrics, without reflections: costs money (see the configuration).
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" mcts_gpt-4o "$@"
