"""What both sides compress: paragraphs of posts, odd texts, and how. Imports nothing foreign."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
RATES = (0.2, 0.5, 0.75)
ODD = (
    "Hello world.",
    "Costs rise to 1,234.56 EUR on 12 May 2021; plate KA-01-HH-1234, order 7F3A-99B.",
    "東京は日本の首都です。" * 8,
    "done 🚀🚀 ✅ " * 12,
    "See https://example.com/a?b=c#d or mail ann.lee+x@example.org, said Ann O'Neil.",
    "Tokens such as <|endoftext|> end. A literal [SEP] and [PAD] and [NEW0] and </s> too.",
    "word " * 900,
    "abc" * 80 + " is long. " + "x" * 120 + " is longer.",
    "one two three. " * 260,
    "def f(x):\n    return x + 1  # adds one\n\nprint(f(41))\n",
    "| a | b |\n|---|---|\n| 1 | 2.50 |\n| 3 | 4.75 |\n",
    '{"id": 7, "bio": "Alice met Bob.", "tags": ["a", "b"]}',
    "ÄÖÜ straße café naïve Ελλάδα Москва العربية हिन्दी ไทย",
    "This is not, and never was, what nobody would not want; isn't it?",
    "A\ttab, a  double space,\r\nand a carriage return.\n\n\nThree breaks.",
)
"""Written for this test: no full stop, unknown characters, words that are cut, special tokens."""


def posts() -> list[str]:
    """Return paragraphs of 18F's blog (posts.json says where from; public domain, CC0)."""
    loaded: dict[str, Any] = json.loads((FOLDER / "posts.json").read_text("utf-8"))
    return list(loaded["paragraphs"])


def texts() -> list[str]:
    """Return the single texts, the longest of several chunks."""
    paragraphs = posts()
    long = [" ".join(paragraphs[i : i + 12]) for i in (0, 40, 80)]
    return [*paragraphs, *ODD, *long]


def cases() -> list[tuple[list[str], dict[str, Any]]]:
    """Return contexts and options of every comparison."""
    paragraphs, single = posts(), texts()
    found: list[tuple[list[str], dict[str, Any]]] = [
        ([text], {"rate": rate}) for text in single for rate in RATES
    ]
    found += [([text], {"rate": 0.4, "token_to_word": "first"}) for text in single[::7]]
    found += [([text], {"rate": 0.33, "force_reserve_digit": True}) for text in single[::7]]
    forced = {"force_tokens": [".", "the", "s"], "rate": 0.3}
    found += [([text], {**forced, "drop_consecutive": n % 2 == 0}) for n, text in enumerate(single)]
    found += [([text], {"target_token": 30, "chunk_end_tokens": [","]}) for text in single[::9]]
    for start in range(0, 60, 5):
        group = paragraphs[start : start + 5]
        found.append((group, {"rate": 0.5, "use_context_level_filter": True}))
        found.append((group, {"target_token": 90, "use_context_level_filter": True}))
        some = {"use_context_level_filter": True, "target_context": 2, "force_context_ids": [4]}
        found.append((group, {**some, "rate": 0.6}))
        found.append((group, {**some, "use_token_level_filter": False}))
    return found


def digest(words: Sequence[tuple[str, bool]], prompt: str) -> str:
    """Return what is compared: the kept words in order, every word's label, and the prompt."""
    kept = [word for word, keep in words if keep]
    labels = "".join("01"[keep] for _, keep in words)
    joined = "\x1e".join([*kept, labels, prompt])
    return hashlib.sha256(joined.encode("utf-8", "surrogatepass")).hexdigest()[:12]
