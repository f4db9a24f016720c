#!/usr/bin/env bash
# Writes the lock files in constraints/ anew from pyproject.toml. Options go to `uv pip compile`, e.g. --upgrade.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v uv >/dev/null || { echo "lock: uv is needed: pip install uv" >&2; exit 1; }

compile() { # output, then more arguments
  local output=$1
  shift
  echo "lock: $output"
  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header \
    --output-file "$output" pyproject.toml constraints/build.in "$@" >/dev/null
}

compile constraints/test.txt constraints/test.in --extra miniwob --extra test "$@"
compile constraints/run.txt --extra miniwob --constraints constraints/test.txt

if grep -n "://" constraints/*.txt; then
  echo "lock: an address got into a lock file: remove it from the sources above" >&2
  exit 1
fi
