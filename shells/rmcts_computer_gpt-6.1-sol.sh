#!/usr/bin/env bash
# R-MCTS with multi-agent debate, acting with the computer tool of GPT-6.1 Sol by its native API: costs money (see the configuration).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ $# = 0 ]; then
  echo "usage: shells/rmcts_computer_gpt-6.1-sol.sh TASK... [options of exact run]      for example: shells/rmcts_computer_gpt-6.1-sol.sh 'miniwob/click-button?seed=1'" >&2
  exit 2
fi
if [ ! -x "$root/.venv/bin/exact" ]; then
  echo "exact is not installed here: run shells/setup.sh first" >&2
  exit 1
fi
exec "$root/.venv/bin/exact" run --config "$root/shells/configs/rmcts_computer_gpt-6.1-sol.yaml" "$@"
