#!/usr/bin/env bash
# Best-first search with GPT-4o, judged by rubrics: costs money (see the configuration).
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" search_gpt-4o "$@"
