#!/usr/bin/env bash
# Build the documentation site into site/, strictly: a warning is an error, and so is a link that leads nowhere.
# Usage: shells/docs.sh [--serve]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ -x .bench/venvs/docs/bin/python ] || bash shells/setup.sh --docs
if [ "${1-}" = --serve ]; then exec .bench/venvs/docs/bin/python -m mkdocs serve; fi
# Not --quiet: with it mkdocs does not count warnings.
NO_MKDOCS_2_WARNING=1 .bench/venvs/docs/bin/python -m mkdocs build --strict 2>&1 | { grep -v "^INFO" || true; }
.venv/bin/python docs/_site/links.py site
