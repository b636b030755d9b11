"""llmlingua 0.2.2's kept words, recorded by benchmarks/parity_record.py, and headrace's."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headrace.compressors.llmlingua.reference import Options, Reference
from headrace.compressors.scorers import TokenClassifier
from headrace.middleware.models import resolve

from .cases import FOLDER, cases, digest, texts
from .checkpoints import bert, xlm_roberta

RECORDED: dict[str, Any] = json.loads((FOLDER / "recorded.json").read_text("utf-8"))


def recorded_count(text: str) -> int:
    """Return cl100k_base's tokens as recorded: one where nothing else was."""
    key = text if len(text) < 60 else hashlib.sha256(text.encode("utf-8")).hexdigest()[:12]
    return int(RECORDED["tokens"].get(key, 1))


def differing(reference: Reference, family: str) -> list[str]:
    """Return the cases whose kept words, labels or prompts are not those recorded."""
    found: list[str] = []
    for (contexts, options), expected in zip(cases(), RECORDED[family], strict=True):
        result = reference.select(contexts, Options(**options))
        is_fine = options.get("use_token_level_filter", True)
        got = digest(result.words if is_fine else [], "\n\n".join(result.texts))
        if expected not in (got, "error"):
            found.append(f"{options} {contexts[0]!r:.60}")
    return found


def check(path: Path, family: str, count: Callable[[str], int]) -> None:
    reference = Reference(TokenClassifier(str(path), device="cpu"), count)
    assert reference.family == family
    assert differing(reference, family) == []


def test_the_record_is_worth_something() -> None:
    assert len(texts()) >= 200
    for family in ("bert", "xlm-roberta"):
        digests = RECORDED[family]
        assert len(digests) == len(cases())
        assert digests.count("error") < 0.02 * len(digests)
        assert len(set(digests)) > 0.7 * len(digests)
    assert RECORDED["versions"]["llmlingua"] == "0.2.2"


def test_xlm_roberta_keeps_the_words_that_the_reference_keeps(tmp_path: Path) -> None:
    check(xlm_roberta(texts(), tmp_path), "xlm-roberta", recorded_count)


@pytest.mark.model
@pytest.mark.slow
def test_bert_keeps_the_words_that_the_reference_keeps(tmp_path: Path) -> None:
    check(bert(resolve("minilm"), tmp_path), "bert", recorded_count)
