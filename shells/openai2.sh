#!/usr/bin/env bash
# Run the tests of the model client with major version 2 of the openai SDK; .venv has the newest. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [ ! -x .venv/bin/pytest ]; then # the quickstart installs exact without what tests need
  echo "the test packages are not installed here: run shells/setup.sh first" >&2
  exit 1
fi
if [ ! -x .venv-openai2/bin/python ]; then
  .venv/bin/python -m venv .venv-openai2
fi
.venv-openai2/bin/python -m pip install -q --require-hashes -r constraints/openai2.txt
# All other packages come from .venv, whose path follows that of the second environment.
site=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
own=$(.venv-openai2/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
echo "import sys; sys.path.append('$site')" >"$own/exact.pth"
.venv-openai2/bin/python -c 'import openai; assert openai.__version__.startswith("2."), openai.__version__; print("openai", openai.__version__)'
exec .venv-openai2/bin/python -m pytest -q "${@:-tests/models}"
