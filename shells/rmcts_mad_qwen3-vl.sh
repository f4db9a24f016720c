#!/usr/bin/env bash
# R-MCTS with multi-agent debate: Qwen3-VL 8B on a vLLM server of your own, http://127.0.0.1:8000/v1 unless set otherwise.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ $# = 0 ]; then
  echo "usage: shells/rmcts_mad_qwen3-vl.sh TASK... [options of exact run]      for example: shells/rmcts_mad_qwen3-vl.sh 'miniwob/click-button?seed=1'" >&2
  exit 2
fi
if [ ! -x "$root/.venv/bin/exact" ]; then
  echo "exact is not installed here: run shells/setup.sh first" >&2
  exit 1
fi
exec "$root/.venv/bin/exact" run --config "$root/shells/configs/rmcts_mad_qwen3-vl.yaml" "$@"
