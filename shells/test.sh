#!/usr/bin/env bash
# Set up, then run lint, floors, and tests beside types, as CI does. Arguments go to pytest: shells/test.sh tests/search -x
# Without arguments, tests that take seconds are left out where their file has a shorter one (tests/short.py).
#   shells/test.sh --whole [PYTEST ARGUMENT]...      all tests: run it before a release (one to two hours on two cores); once they have passed,
#                                                    tests/whole.json names the commit: commit it with tests/seconds.json. A few that fail
#                                                    while others run beside them run again, alone, and whole.json names them
#   shells/test.sh --changed [PYTEST ARGUMENT]...    tests that tests/choose.toml names for what changed since that commit, as CI does. The
#                                                    longest are left out until the others fit into about eleven minutes
#   shells/test.sh --parity-live [--parity-record]   compare with the peers themselves (JAX, OpenSpiel, TreeQuest, WebArena's evaluators),
#                                                    which the other tests know from recorded answers; record the answers again
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ "${1-}" = --parity-live ]; then
  bash shells/setup.sh --parity
  live=(tests/search/parity tests/search/algorithms/test_abmcts.py tests/benchmarks/webarena/test_parity*.py)
  exec .venv/bin/pytest -n 2 --dist loadfile "${live[@]}" "$@"
fi
bash shells/setup.sh
echo "test: $(.venv/bin/python -m tests.choose --last)"
# These measure delays, or use all processors themselves: in a whole run they have the machine to themselves, and come first.
quiet=(tests/docs/test_goals.py tests/gate/test_resources.py tests/models/test_llamacpp.py)
case "${1-}" in
  "") chosen=(--short) ;;
  --whole)
    chosen=("${@:2}")
    case "${*:2}" in "" | --record-seconds) chosen+=("${quiet[@]/#/--ignore=}" --record-whole) ;; esac
    ;;
  --changed)
    files=$(.venv/bin/python -m tests.choose)
    read -r -d "" -a chosen <<<"$files" || true
    chosen+=(--within 2100 "${@:2}")
    ;;
  *) chosen=("$@") ;;
esac
step() {
  echo "test: $1"
  shift
  "$@"
}
# Where an image of Python switches bytecode off, each `exact` that a test starts would compile its modules again.
unset PYTHONDONTWRITEBYTECODE
# In a fresh clone each process of the tests would compile all of them: each half of them is compiled once, beside the checks.
said=$(mktemp)
beside=()
trap 'kill "${beside[@]}" 2>/dev/null || true; rm -f "$said"' EXIT
if ! [ -d tests/__pycache__ ]; then
  half=(tests/environments tests/runs tests/agents)
  .venv/bin/python -m pytest --collect-only -q "${half[@]}" >/dev/null 2>&1 &
  beside+=($!)
  .venv/bin/python -m pytest --collect-only -q tests "${half[@]/#/--ignore=}" >/dev/null 2>&1 &
  beside+=($!)
fi
step "ruff check" .venv/bin/python -m ruff check .
step "ruff format" .venv/bin/python -m ruff format --check .
step "floors (import-linter)" .venv/bin/lint-imports --no-logo
tests=0 types=0 run=(.venv/bin/pytest --dist loadfile --no-loadscope-reorder)
if [[ " ${chosen[*]} " == *" --record-whole "* ]]; then
  [ ${#beside[@]} = 0 ] || wait "${beside[@]}" || true
  step "tests that want the machine to themselves" "${run[@]}" -n 0 "${quiet[@]}" "${@:2}" || exit $?
fi
# mypy needs two minutes of one core. It gets them beside the tests, at the lowest priority, for tests wait half of their time.
nice -n 19 sh -c '.venv/bin/python -m mypy && .venv/bin/python -m mypy --config-file bench/mypy.ini bench/*.py' >"$said" 2>&1 &
mypy=$!
[ ${#beside[@]} = 0 ] || wait "${beside[@]}" || true
beside=("$mypy")

# Tests of a file stay in one process because they share fixtures, some of which take a minute. Tests wait for a third of their time, so
# three processes keep two cores busy.
step "tests" "${run[@]}" -n 3 "${chosen[@]}" || tests=$?
if [ "$tests" = 1 ] && [[ " ${chosen[*]} " == *" --record-whole "* ]]; then
  # Tests that measure delays fail on a busy machine. What fails alone as well is a fault.
  tests=0
  step "failed tests, alone" "${run[@]}" -n 0 --last-failed --last-failed-no-failures none --record-whole || tests=$?
fi
wait "$mypy" || types=$?
step "types (mypy)" cat "$said"
exit $((tests ? tests : types))
