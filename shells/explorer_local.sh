#!/usr/bin/env bash
# A model of your own that was trained on exploratory conversations, without search (see the configuration). It costs nothing.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ $# = 0 ]; then
  echo "usage: shells/explorer_local.sh TASK... [options of exact run]      for example: shells/explorer_local.sh 'miniwob/click-button?seed=1'" >&2
  exit 2
fi
if [ ! -x "$root/.venv/bin/exact" ]; then
  echo "exact is not installed here: run shells/setup.sh first" >&2
  exit 1
fi
exec "$root/.venv/bin/exact" run --config "$root/shells/configs/explorer_local.yaml" "$@"
