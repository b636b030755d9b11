"""Diffs among words are whole or absent, and whole where they are most of the text."""

from __future__ import annotations

import pytest

from headrace.compressors import Budget, Compressor, make_counter, make_scorer
from headrace.compressors.detection import detect
from headrace.compressors.diffs import diffs

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
PATCH = """\
diff --git a/mill/wheel.py b/mill/wheel.py
index 3f1c2aa..9be01d4 100644
--- a/mill/wheel.py
+++ b/mill/wheel.py
@@ -10,7 +10,7 @@ def share(height):
     # the share of the power that the wheel can use at this height
     if height > 3.0:
         return 0.85
-    return 0.63
+    return 0.6
 
 
 def turns(flow):
@@ -40,2 +40,3 @@ def turns(flow):
     if flow <= 0:
+        return 0
         raise Dry(flow)
"""
SHOW = f"""\
commit 9be01d4c5a2f0e7b8d6c4a1e3f5b7d9c0a2e4f68
Author: Ann Lee <ann@example.org>
Date:   Tue Dec 1 10:00:00 2026 +0100

    The wheel gives what was measured

    The number that stood here was taken from a book, and it was not what we
    measured on the wheel of the mill in the last year.

{PATCH}"""
LETTER = (
    "We looked at the wheel for a long time, and we think that the number in the book is not "
    "right. It was taken from a mill that has another wheel, and nobody ever wrote down how it was "
    "made.\n\n"
)
RATES = [0.2, 0.4, 0.6, 0.8]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_a_commit_with_its_message_is_whole_with_a_reason(rate: float, ends: str) -> None:
    text = SHOW.replace("\n", ends)
    [result] = COMPRESSOR.compress([text], Budget(rate=rate))
    assert result.text == text
    assert "a diff is kept whole" in (result.reason or "")


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("lead", ["", "    ", "> "])
def test_a_diff_in_a_letter_is_whole_or_absent_and_the_letter_is_shorter(
    rate: float, lead: str
) -> None:
    body = "\n".join(f"{lead}{line}" for line in PATCH.strip().split("\n"))
    text = f"{LETTER * 3}{body}\n\n{LETTER * 3}"
    [result] = COMPRESSOR.compress([text], Budget(rate=rate))
    assert body.strip("> ") in result.text or "@@" not in result.text
    assert "+    return 0.6" not in result.text or "-    return 0.63" in result.text
    assert 0 < result.tokens_out <= rate * result.tokens_in


def test_what_stands_before_and_behind_a_diff_is_none_of_it() -> None:
    text = f"Look at this:\n{PATCH}We did that on Monday.\n- and this is a point\n"
    assert [text[a:b] for a, b in diffs(text)] == [PATCH.strip()]


def test_a_rename_has_no_hunk() -> None:
    rename = "diff --git a/a.py b/b.py\nsimilarity index 100%\nrename from a.py\nrename to b.py"
    text = f"Then we moved it:\n\n{rename}\n\nThat is all."
    assert [text[a:b] for a, b in diffs(text)] == [rename]


@pytest.mark.parametrize(
    "text", ["--- a rule\nand +++ more\n", "@@ nothing @@\n", "--- \n+++ \nNo hunk follows.\n"]
)
def test_marks_alone_are_no_diff(text: str) -> None:
    assert list(diffs(text)) == []
    assert detect(text) == "prose"
