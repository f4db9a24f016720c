#!/usr/bin/env bash
# Compare R-MCTS with ReAct, paired by task and seed, on 40 MiniWoB++ tasks with any chat model. Says first what it costs at most.
# Interrupted, the same command goes on. shells/gain/tasks.txt has the first 40 tasks by the SHA-256 of their names, of the 114 that
# docs/results/miniwob.md does not show apart.
#   shells/reproduce_gain.sh gpt-4o-mini
#   shells/reproduce_gain.sh qwen3:8b --set models.policy.provider=ollama --set models.policy.price.input=0 --set models.policy.price.output=0
# Variables: YES=1 does not ask; TASKS is another list of tasks; OUT is another folder.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ $# = 0 ]; then
  echo "usage: [YES=1] shells/reproduce_gain.sh MODEL [options of exact bench]      for example: shells/reproduce_gain.sh gpt-4o-mini" >&2
  exit 2
fi
exact=$root/.venv/bin/exact
if [ ! -x "$exact" ]; then
  echo "exact is not installed here: run shells/setup.sh first" >&2
  exit 1
fi
model=$1
shift
out=${OUT:-runs/gain-${model//[^A-Za-z0-9_.-]/_}}
if [ -f "$out/bench.json" ]; then
  exec "$exact" bench --resume --out "$out"
fi
mapfile -t tasks < <(sed 's/$/?seed=0/' "${TASKS:-$root/shells/gain/tasks.txt}")
words=("${tasks[@]}" --agent "$root/shells/gain/react.yaml" --agent "$root/shells/gain/rmcts.yaml" --set "models.policy.model=$model" "$@" --out "$out")
"$exact" bench "${words[@]}" --dry-run
if [ "${YES:-}" != 1 ]; then
  read -r -p "Start? [y/N] " answer
  [ "$answer" = y ] || exit 1
fi
"$exact" bench "${words[@]}"
echo "The table is in $out/table.md: rmcts minus react, with its 95% interval over tasks."
