#!/usr/bin/env bash
# R-MCTS on OSWorld: GPT-4o as policy, debaters, judge and reflector: costs money (see the configuration).
# OBSERVATION is what the models see: a11y_tree (default), screenshot, screenshot_a11y_tree, or som (elements' ids drawn into the screenshot).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
if [ $# = 0 ]; then
  echo "usage: [OBSERVATION=som] shells/rmcts_osworld_gpt-4o.sh TASK... [options of exact run]      for example: shells/rmcts_osworld_gpt-4o.sh 'osworld/@offline'" >&2
  exit 2
fi
if [ ! -x "$root/.venv/bin/exact" ]; then
  echo "exact is not installed here: run shells/setup.sh first" >&2
  exit 1
fi
case "${OBSERVATION:-a11y_tree}" in
  a11y_tree) shown=() ;;
  screenshot) shown=(policy.images=true policy.text=false value.images=true) ;;
  screenshot_a11y_tree) shown=(policy.images=true value.images=true) ;;
  som)
    shown=(policy.images=true policy.marks=true value.images=true value.marks=true)
    [ -n "${EXACT_OSWORLD_OPTIONS-}" ] || export EXACT_OSWORLD_OPTIONS='{"action_space": "elements"}' # an element is named by its mark
    ;;
  *)
    echo "OBSERVATION=$OBSERVATION: choose a11y_tree, screenshot, screenshot_a11y_tree or som" >&2
    exit 2
    ;;
esac
[ ${#shown[@]} = 0 ] || set -- "$@" "${shown[@]/#/--set=}"
exec "$root/.venv/bin/exact" run --config "$root/shells/configs/rmcts_osworld_gpt-4o.yaml" "$@"
