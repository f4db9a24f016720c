#!/usr/bin/env bash
# A model of your own that was trained on exploratory conversations, without search (see the configuration). It costs nothing.
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" explorer_local "$@"
