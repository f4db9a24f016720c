#!/usr/bin/env bash
# R-MCTS with GPT-4o, judged by the probability of one token: costs money (see the configuration).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ $# = 0 ]; then
  echo "usage: shells/rmcts_logprob_gpt-4o.sh TASK... [options of exact run]      for example: shells/rmcts_logprob_gpt-4o.sh 'miniwob/click-button?seed=1'" >&2
  exit 2
fi
if [ ! -x "$root/.venv/bin/exact" ]; then
  echo "exact is not installed here: run shells/setup.sh first" >&2
  exit 1
fi
exec "$root/.venv/bin/exact" run --config "$root/shells/configs/rmcts_logprob_gpt-4o.yaml" "$@"
