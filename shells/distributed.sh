#!/usr/bin/env bash
# A benchmark on many machines: the four steps of ExACT's manager and workers, with ours beside.
#
#   ExACT                                                        here
#   1. manager.py on one machine: a server on port 12000         exact cluster jobs JOBS.yaml: its lists, translated; no key is copied
#   2. worker.py on each machine, which joins the manager        exact cluster up machines.yaml: Ray over ssh, with a token
#   3. dist_cli.py posts a shell script and the lists to it      exact bench ... --engine ray: one task of Ray a search
#   4. each worker's results, gathered by hand                   the benchmark's folder, on this machine: exact show --progress, report, compare
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ $# -lt 2 ]; then
  echo "usage: [FILES=files.yaml] [PROVIDERS=providers.yaml] shells/distributed.sh JOBS.yaml AGENT.yaml [options of exact bench]" >&2
  exit 2
fi
exact=$root/.venv/bin/exact
if [ ! -x "$exact" ]; then
  echo "exact is not installed here: run shells/setup.sh first" >&2
  exit 1
fi
jobs=$1 agent=$2
shift 2
out=$(mktemp -d "${TMPDIR:-/tmp}/exact-jobs-XXXXXX")
trap 'rm -rf "$out"' EXIT

# 1. Translate the lists.
lists=()
[ -z "${FILES:-}" ] || lists+=(--files "$FILES")
[ -z "${PROVIDERS:-}" ] || lists+=(--providers "$PROVIDERS")
"$exact" cluster jobs "$jobs" "${lists[@]}" --out "$out"

# 2. Start Ray on the machines, and end it with this script.
trap '"$exact" cluster down "$out/machines.yaml" || true; rm -rf "$out"' EXIT
"$exact" cluster up "$out/machines.yaml"

# 3. Run the benchmark with this agent. It checks every machine before the first task.
mapfile -t words <"$out/bench.args"
"$exact" bench "${words[@]}" --agent "$agent" "$@"

# 4. The results are in the folder that it printed: exact show FOLDER --progress, exact compare FOLDER/agents/A FOLDER/agents/B.
