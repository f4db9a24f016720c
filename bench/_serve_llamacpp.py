"""Serve a GGUF file by llama.cpp on loopback, with threads that do not spin: run by the Python of .bench/venvs/llamacpp.

Usage: _serve_llamacpp.py PORT SLOTS CONTEXT THREADS [WEIGHTS [ADAPTER]]

Prints `ready URL` once it answers, and ends with its standard input. Port 0: any free one. WEIGHTS: a GGUF file; without it, or empty,
SmolLM2 135M. ADAPTER: a LoRA adapter as GGUF.
"""

import sys
from pathlib import Path

import xllamacpp
from _smollm2 import smallest

ALIAS = "smollm2-135m"


def serve(port: int, slots: int, context: int, threads: int, weights: str = "", adapter: str = "") -> None:
    """Serve until standard input ends. `context` is the number of tokens of each slot."""
    if weights and not Path(weights).is_file():
        raise SystemExit(f"there is no file {weights}: run shells/setup.sh --instruct, or name a GGUF file")
    params = xllamacpp.CommonParams()
    params.model.path = weights or str(smallest())
    params.model_alias = {Path(weights).stem if weights else ALIAS}
    params.hostnames, params.port, params.n_threads_http = ["127.0.0.1"], port, 8
    params.n_parallel, params.n_ctx, params.cache_ram_mib = slots, slots * context, 4096
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads, cpu.poll = threads, 0
    if adapter:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(adapter, 1.0)]
    server = xllamacpp.Server(params)
    print(f"ready {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(*map(int, sys.argv[1:5]), *sys.argv[5:])
