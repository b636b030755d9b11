"""What is never trained on, decided by article and by question text alone."""

from __future__ import annotations

import hashlib
from typing import Any

SQUAD_ARTICLES = (
    "Oxygen",
    "University_of_Chicago",
    "Economic_inequality",
    "European_Union_law",
    "Sky_(United_Kingdom)",
    "Pharmacy",
    "Yuan_dynasty",
    "Normans",
    "Rhine",
    "Nikola_Tesla",
)
"""SQuAD articles for measuring, left out of both versions (1.1's last ten)."""

DEV_ARTICLES = ("Steam_engine", "Kenya")
"""SQuAD articles that are not trained on either: what mixing weights are chosen on."""

FILES = (
    "hotpotqa/dev.jsonl.gz",
    "qmsum/qmsum_val.jsonl.gz",
    "wikitext2/test.txt.gz",
    "rerank/",
    "realdocs/",
    "xquad/",
)
"""Files and folders that training does not open."""


def is_held_out(record: dict[str, Any]) -> bool:
    """Whether an NQ record is for measuring: two of three questions are.

    >>> is_held_out({"question": "who got the first nobel prize in physics"})
    False
    """
    digest = hashlib.sha256(str(record["question"]).strip().lower().encode()).digest()
    return digest[0] % 3 != 0
