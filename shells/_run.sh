#!/usr/bin/env bash
# Run tasks with a configuration of shells/configs: the scripts of that folder's names call this one.
# Usage: shells/_run.sh NAME TASK... [options of exact run]
# For OSWorld, OBSERVATION names what the models see: a11y_tree (default), screenshot, screenshot_a11y_tree, or som (elements' ids are
# drawn into the screenshot).
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
name=${1:?"usage: shells/_run.sh NAME TASK... [options of exact run]"}
shift
before="" example="miniwob/click-button?seed=1" settings=()
if [[ $name == *_osworld_* ]]; then
  before="[OBSERVATION=som] " example="osworld/@offline"
  case "${OBSERVATION:-a11y_tree}" in
    a11y_tree) ;;
    screenshot) settings=(view.images=true view.text=false) ;;
    screenshot_a11y_tree) settings=(view.images=true) ;;
    som)
      settings=(view.images=true view.marks=true)
      [ -n "${EXACT_OSWORLD_OPTIONS-}" ] || export EXACT_OSWORLD_OPTIONS='{"action_space": "elements"}' # an element is named by its mark
      ;;
    *)
      echo "OBSERVATION=$OBSERVATION: choose a11y_tree, screenshot, screenshot_a11y_tree or som" >&2
      exit 2
      ;;
  esac
fi
if [ $# = 0 ]; then
  echo "usage: ${before}shells/$name.sh TASK... [options of exact run]      for example: shells/$name.sh '$example'" >&2
  exit 2
fi
if [ ! -x "$root/.venv/bin/exact" ]; then
  echo "exact is not installed here: run shells/setup.sh first" >&2
  exit 1
fi
[ ${#settings[@]} = 0 ] || set -- "$@" "${settings[@]/#/--set=}"
exec "$root/.venv/bin/exact" run --config "$root/shells/configs/$name.yaml" "$@"
