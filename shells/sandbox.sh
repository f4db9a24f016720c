#!/usr/bin/env bash
# Find or fetch gVisor's runsc (2024-07-29 or newer), which forkable environments need, and print its path. The system is not changed.
# Usage: shells/sandbox.sh        target: $XDG_CACHE_HOME/exact/runsc (~/.cache/exact/runsc); $EXACT_RUNSC names another one
set -euo pipefail

oldest=20240729
place="${XDG_CACHE_HOME:-$HOME/.cache}/exact"

fail() {
  printf 'sandbox: %s\n' "$*" >&2
  exit 1
}
has() { command -v "$1" >/dev/null 2>&1; }
dated() { # prints the date of a build as a number such as 20240729, or 0
  grep -oE '20[0-9]{6}' <<<"$1" | head -n 1 || echo 0
}
usable() { # a path
  local day
  [ -x "$1" ] || return 1
  day=$(dated "$("$1" --version 2>/dev/null | head -n 1)")
  [ "$day" -ge "$oldest" ]
}

if [ -n "${EXACT_RUNSC-}" ]; then
  usable "$EXACT_RUNSC" || fail "EXACT_RUNSC=$EXACT_RUNSC is no runsc of $oldest or newer: correct it or unset it"
  printf '%s\n' "$EXACT_RUNSC" && exit
fi
for found in "$place/runsc" "$(command -v runsc || true)"; do
  if usable "$found"; then printf '%s\n' "$found" && exit; fi
done

[ "$(uname -s)" = Linux ] || fail "gVisor runs on Linux only: here environments restore states by reset and replay"
{ has apt-get && has dpkg; } ||
  fail "no apt-get here: put gVisor's runsc ($oldest or newer; see gvisor.dev/docs/user_guide/install) at $place/runsc, then run this again"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/lists/partial" "$work/archives/partial" "$work/parts"

# Use the machine's own sources, and add the backports of the same mirror.
apt_private() {
  "$1" -o Dir::Etc::sourcelist="$work/list" -o Dir::Etc::sourceparts="$work/parts" -o Dir::State::lists="$work/lists" \
    -o Dir::Cache::archives="$work/archives" -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= -o APT::Sandbox::User=root "${@:2}"
}
targets() { apt-get indextargets --format "\$(ORIGIN)|\$(REPO_URI)|\$(CODENAME)|\$(COMPONENT)" 'Created-By: Packages' 2>/dev/null; }
sources() {
  local origin uri suite component key=/usr/share/keyrings/debian-archive-keyring.gpg
  [ -r "$key" ] || key=''
  while IFS='|' read -r origin uri suite component; do
    case "$origin|$component|$suite" in
      *\|*-*) ;;
      Debian\|main\|?*) printf "deb ${key:+[signed-by=$key]} $uri %s main\n" "$suite" "$suite-backports" ;;
    esac
  done < <(targets) | sort -u
}
sources >"$work/list"
[ -s "$work/list" ] ||
  fail "apt knows no Debian archive here: put gVisor's runsc ($oldest or newer; see gvisor.dev/docs/user_guide/install) at $place/runsc, then run this again"

printf 'sandbox: looking for runsc in Debian and its backports\n' >&2
apt_private apt-get update -qq >&2 || fail "the package lists could not be fetched: check the network, then run this again"
version=$(apt_private apt-cache madison runsc | awk '{print $3}' | sort -V | tail -n 1)
{ [ -n "$version" ] && [ "$(dated "$version")" -ge "$oldest" ]; } ||
  fail "Debian's runsc here is ${version:-missing}, $oldest is needed: put gVisor's own at $place/runsc, then run this again"
(cd "$work" && apt_private apt-get download -qq "runsc=$version" >&2) || fail "runsc $version could not be fetched: check the network, then run this again"
dpkg -x "$work"/runsc_*.deb "$work/root"
mkdir -p "$place"
mv "$work/root/usr/bin/runsc" "$place/runsc.new"
usable "$place/runsc.new" || fail "the runsc of package $version does not run here: see $place/runsc.new --version"
mv "$place/runsc.new" "$place/runsc"
printf '%s\n' "$place/runsc"
