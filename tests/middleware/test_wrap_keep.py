"""What ``wrap(keep=...)`` takes, and that it keeps it."""

from __future__ import annotations

import re
from typing import Any

import openai
import pytest

from headrace import wrap
from headrace.middleware.errors import InvalidRequest
from headrace.middleware.wrap_options import Options
from headrace.middleware.wrap_prepare import prepare

SENTENCE = "The old mill number {} was built of grey stone by a careful and quite patient builder. "
LONG = "".join(SENTENCE.format(i) for i in range(20))
CHAT: list[Any] = [
    {"role": "system", "content": LONG},
    {"role": "user", "content": LONG},
    {"role": "assistant", "content": "I see."},
    {"role": "user", "content": "Who built mill 7?"},
]


@pytest.mark.parametrize("wrong", [3, None, {}])
def test_keep_has_patterns_only(wrong: Any) -> None:
    with pytest.raises(InvalidRequest, match="keep has texts that are patterns, got"):
        wrap(openai.OpenAI(api_key="k"), rate=0.5, keep=[wrong])


async def test_a_compiled_pattern_keeps_what_it_matches() -> None:
    """It was written down as text, ``re.compile(...)``, and kept nothing."""
    for pattern in ("mill number 7", re.compile("mill number 7")):
        options = Options.of({"rate": 0.05, "compressor": "lexical", "keep": [pattern]})
        prepared = await prepare("chat", {"messages": CHAT}, options)
        sent = prepared.body["messages"][1]["content"]
        assert "mill number 7" in sent
        assert len(sent) < 0.2 * len(LONG)
