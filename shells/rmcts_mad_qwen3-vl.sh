#!/usr/bin/env bash
# R-MCTS with multi-agent debate: Qwen3-VL 8B on a vLLM server of your own, http://127.0.0.1:8000/v1 unless set otherwise.
exec "$(dirname "${BASH_SOURCE[0]}")/_run.sh" rmcts_mad_qwen3-vl "$@"
