#!/usr/bin/env bash
# GPT-4o without look-ahead: one answer at each step, and it is done: costs money (see the configuration).
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" react_gpt-4o "$@"
