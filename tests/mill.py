"""The texts that the steps for frameworks are tried on, and the options that they must refuse."""

from __future__ import annotations

from typing import Any

DAYS = "\n".join(
    f"On day {day} the miller ground {day * 3} sacks of rye and nothing else of note happened."
    for day in range(1, 20)
)
TEXTS = ["The weather was fine.", DAYS, "Sacks of rye are heavy."]
QUESTION = "How many sacks were ground on day 7?"
WHEELS = [
    "Viktor Kaplan, who as it happens came from Austria, patented a turbine in 1913.",
    "The Pelton wheel of 1880 is driven by jets of water.",
    "A runner stone of 1.2 metres weighs about 1,200 kilograms.",
]
WHEN = "When did Kaplan patent his turbine?"

WRONG: list[tuple[dict[str, Any], str]] = [
    ({"rate": 1.5}, "1.5"),
    ({"rate": "half"}, "'half'"),
    ({"rate": True}, "True"),
    ({"rate": 0.5, "threshold": 0.5}, "exactly one of"),
    ({"target_tokens": -1}, "-1"),
    ({"method": "zz"}, "no method 'zz': choose auto, bm25, bi-encoder, mini"),
    ({"method": 3}, "got 3"),
    ({"method": "bm25", "top_k": 0}, "top_k must be a whole number from 1 on, got 0"),
    ({"method": "bm25", "top_k": "2"}, "got '2'"),
    ({"method": "bm25", "compressor": "zz"}, "no compressor 'zz': choose auto, lexical, mini"),
    ({"rate": 0.5, "compressor": "sentences:zz"}, "no compressor 'zz': choose lexical, auto, bm25"),
    ({"rate": 0.5, "compressor": "llmlingua:zz"}, "no compressor 'zz': choose smollm2"),
    ({"rate": 0.5, "compressor": "lexical:zz"}, "'lexical:zz'"),
    ({"rate": 0.5, "compressor": ""}, "got ''"),
    ({"rate": 0.5, "tokenizer": "zz"}, "no tokenizer 'zz': choose None, an OpenAI model"),
    ({"rate": 0.5, "tokenizer": 7}, "got 7"),
]
"""Options that make no sense, and what must be said of them, in one line, when a step is made."""

TABLE = "day,sacks,miller\n" + "\n".join(f"{day},{day * 3},Ann" for day in range(1, 40))
"""A text that is kept whole, whatever the budget."""
