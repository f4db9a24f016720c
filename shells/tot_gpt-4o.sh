#!/usr/bin/env bash
# Tree of thoughts, breadth first, with GPT-4o, judged by rubrics: costs money (see the configuration).
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" tot_gpt-4o "$@"
