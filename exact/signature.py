"""Signature of a run folder: the user who made it here may go on with it, whatever it names. Any other folder may be a stranger's."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from pathlib import Path

from exact.errors import UsageError
from exact.untrusted import read_yaml

_NAME = "signature"
_FREE = ("limits",)
"""Sections of a configuration that may be changed without a new signature."""
_MOST_BYTES = 4 << 20
"""Bytes of the largest configuration."""
_VARIABLE = "EXACT_SIGNATURE_KEY"
"""Environment variable that holds the key of this process and its children, if none can be stored."""


def sign(folder: Path) -> None:
    """Sign the instructions of a run folder: its tasks and its configuration without limits. Raises OSError."""
    (folder / _NAME).write_text(_signature(folder) + "\n", "ascii")


def is_signed(folder: Path) -> bool:
    """Return whether this user signed a run folder as it is now."""
    try:
        given = (folder / _NAME).read_text("ascii").strip()
        return hmac.compare_digest(given, _signature(folder))
    except (OSError, UsageError, ValueError, RecursionError):
        return False


def _signature(folder: Path) -> str:
    """Return the code of a folder's contents. Raises OSError, and UsageError or ValueError if they cannot be read."""
    config = read_yaml(folder / "config.yaml", _MOST_BYTES) or {}
    if not isinstance(config, dict):
        raise ValueError("the configuration is no mapping")
    told = [{key: value for key, value in config.items() if key not in _FREE}, json.loads((folder / "run.json").read_bytes())]
    return hmac.new(_key(), json.dumps(told, sort_keys=True, default=str).encode(), hashlib.sha256).hexdigest()


def _key() -> bytes:
    """Return the key of this user, made on first use and readable by no other user."""
    path = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "exact" / "signature.key"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{secrets.token_hex(8)}.part")
        if not path.exists():
            try:
                with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                    file.write(secrets.token_hex(32))
                os.link(part, path)  # of two processes that make one, the first succeeds
            except FileExistsError:
                pass
            finally:
                part.unlink(missing_ok=True)
        return path.read_bytes()
    except (OSError, RuntimeError):
        return os.environ.setdefault(_VARIABLE, secrets.token_hex(32)).encode()
