#!/usr/bin/env bash
# Rejection sampling with the built-in agent and an oracle, which sees the verdict of the benchmark: headroom, not a result.
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" rejection_builtin "$@"
