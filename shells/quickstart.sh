#!/usr/bin/env bash
# Set up exact and let R-MCTS solve a few MiniWoB++ tasks in Chromium, offline and without an API key.
# Usage: shells/quickstart.sh [TASK...]
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

bash shells/setup.sh --no-test

tasks=("$@")
if [ $# = 0 ]; then
  tasks=(
    "miniwob/click-button?seed=1"
    "miniwob/click-collapsible?seed=1"
    "miniwob/click-tab-2?seed=1"
    "miniwob/enter-password?seed=1"
    "miniwob/login-user?seed=1"
  )
fi
run="runs/quickstart-$(date +%Y%m%d-%H%M%S)"
.venv/bin/exact run "${tasks[@]}" --config shells/configs/rmcts_builtin.yaml --set limits.seconds=20 --out "$run"

reports() { find "$run" -name 'report.html' | sort; }
[ -n "$(reports)" ] || .venv/bin/exact report "$run"
echo
echo "Each task's tree of tried actions is one HTML file. Open in a browser:"
reports | while IFS= read -r file; do printf '  %s\n' "$root/$file"; done
