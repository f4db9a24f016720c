#!/usr/bin/env bash
# GPT-4o on OSWorld without look-ahead: one answer at each step, and it is done: costs money (see the configuration).
# OBSERVATION is what the models see: a11y_tree (default), screenshot, screenshot_a11y_tree, or som (elements' ids drawn into the screenshot).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ $# = 0 ]; then
  echo "usage: [OBSERVATION=som] shells/react_osworld_gpt-4o.sh TASK... [options of exact run]      for example: shells/react_osworld_gpt-4o.sh 'osworld/@offline'" >&2
  exit 2
fi
if [ ! -x "$root/.venv/bin/exact" ]; then
  echo "exact is not installed here: run shells/setup.sh first" >&2
  exit 1
fi
shown=()
# shellcheck source=/dev/null
. "$root/shells/osworld_observation.bash"
[ ${#shown[@]} = 0 ] || set -- "$@" "${shown[@]/#/--set=}"
exec "$root/.venv/bin/exact" run --config "$root/shells/configs/react_osworld_gpt-4o.yaml" "$@"
