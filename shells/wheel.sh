#!/usr/bin/env bash
# Build the wheel and try it as a user would: in an empty folder, in a fresh virtual environment of each Python.
# Usage: shells/wheel.sh [--light] [--tutorial] [PYTHON...]
#   --light    one Python, that of .venv, whose packages it uses instead of downloading them
#   --tutorial follow the tutorial word for word, too, which takes a minute or two (tests/docs/test_tutorial.py)
#   PYTHON     interpreters to try; by default every python3.11 to python3.14 on PATH or among pyenv's
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
root=$PWD

light="" tutorial=""
[ "${1-}" != --light ] || { light=yes && shift; }
[ "${1-}" != --tutorial ] || { tutorial=yes && shift; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
.venv/bin/python -m hatchling build -t wheel -d "$work" >/dev/null 2>&1
wheel=$(echo "$work"/*.whl)

pythons=("$@")
if [ -n "$light" ]; then
  pythons=(.venv/bin/python)
elif [ ${#pythons[@]} = 0 ]; then
  for minor in 11 12 13 14; do
    found=$(command -v "python3.$minor" || true)
    for other in "$HOME/.pyenv/versions/3.$minor".*/bin/python; do [ ! -x "$other" ] || found=$other; done
    if [ -n "$found" ] && "$found" -c '' 2>/dev/null; then pythons+=("$found"); else echo "wheel: no Python 3.$minor here"; fi
  done
fi

try() { # the steps of a new user; stops at the first that fails
  set -e
  cd "$2"
  PATH="$1/bin:$PATH"
  exact --version
  python -W error -c 'import exact; print(exact.search, exact.solve)' >/dev/null
  exact doctor >doctor.txt || true
  ! grep -E 'shells/' doctor.txt || { echo "wheel: doctor names a script of the clone" >&2; return 1; }
  exact list configs rmcts_gpt-4o >/dev/null
  exact list tasks miniwob >tasks.txt
  exact run 'miniwob/click-test?seed=1' --config rmcts_builtin --set search.iterations=4
  exact show runs/* >/dev/null
  test -s runs/*/tasks/*/report.html
}

failed=0
for python in "${pythons[@]}"; do
  version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])')
  place="$work/$version" began=$SECONDS
  "$python" -m venv "$place/venv"
  if [ -n "$light" ]; then
    .venv/bin/python -m pip --python "$place/venv/bin/python" install -qq --no-index --no-deps "$wheel"
    echo "$root/.venv/lib/python${version%.*}/site-packages" >"$(echo "$place"/venv/lib/python*/site-packages)/dependencies.pth"
  else
    "$place/venv/bin/python" -m pip install -qq --disable-pip-version-check "${wheel}[miniwob]"
  fi
  mkdir "$place/empty"
  follow() { # the tutorial, by this checkout's tests and the installed package
    [ -z "$tutorial" ] || EXACT_TUTORIAL_PYTHON="$place/venv/bin/python" .venv/bin/python -m pytest -q -p no:cacheprovider tests/docs/test_tutorial.py
  }
  if { (try "$place/venv" "$place/empty") && follow; } >"$place/log" 2>&1; then
    echo "wheel: Python $version: well, $((SECONDS - began)) s"
  else
    echo "wheel: Python $version: failed" >&2 && tail -20 "$place/log" >&2
    failed=1
  fi
done
exit $failed
