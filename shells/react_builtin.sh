#!/usr/bin/env bash
# The built-in agent without look-ahead, to compare with: no language model, no key, no cost.
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" react_builtin "$@"
