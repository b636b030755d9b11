"""What the pages on wrapping and compressing say of formats, names and fields."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

import headrace
from headrace import Compress, Message, Request
from headrace.middleware.report import Report, StageReport

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE = "".join(
    f"<p>On day {day} the miller ground {day * 3} sacks of rye and nothing else happened.</p>\n"
    for day in range(15)
)
WHOLE = {
    "HTML": f"<html><head><title>Mill</title></head><body>{PAGE}</body></html>",
    "INI": "[mill]\n" + "\n".join(f"wheel{n} = overshot\nwidth{n} = {n}" for n in range(15)),
    "SQL": "SELECT a, b FROM mills WHERE id = 7 AND name = 'x';\n" * 16,
}


@pytest.mark.parametrize("name", WHOLE)
def test_formats_that_the_page_calls_whole_are(name: str) -> None:
    result = headrace.compress(WHOLE[name], rate=0.4, compressor="lexical")
    assert result.text == WHOLE[name]
    assert "kept whole" in (result.reason or "")
    assert name in (DOCS / "compression.md").read_text()


def test_the_fields_of_the_report_are_named() -> None:
    text = (DOCS / "wrap.md").read_text()
    names = [field.name for kind in (Report, StageReport) for field in dataclasses.fields(kind)]
    for name in (*names, "tokens_saved", "to_dict()"):
        assert f"`.{name}`" in text or name == "predicted"


async def test_a_tokenizer_that_the_hub_has_not_lets_the_request_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    stage = Compress(0.5, tokenizer="no-such-org/no-such-tokenizer")
    with pytest.raises(headrace.ModelUnavailable, match="no-such-org/no-such-tokenizer"):
        await stage.transform(Request((Message.user(PAGE), Message.user("Who?"))))
