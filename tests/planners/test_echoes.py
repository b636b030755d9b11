"""Marks that a model repeats, as it writes them."""

from __future__ import annotations

import pytest

from headrace.planners.echoes import ListMark, without_fence


def stripped(mark: str, item: str, text: str) -> str:
    """Return the text without its mark, having checked that what is shown early stays."""
    found = ListMark(mark, item)
    shown = ""
    for size in range(len(text) + 1):
        piece = found.without(text[:size], is_ended=False)
        if piece is not None:
            assert piece.startswith(shown)
            shown = piece
    whole = found.without(text, is_ended=True)
    assert whole is not None
    assert whole.startswith(shown)
    return whole


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        ("3.", "3. Troisième chose"), ("3.", "3) Troisième chose"), ("3)", "(3) Troisième chose"),
        ("3.", "**3.** Troisième chose"), ("3.", "Item 3: Troisième chose"),
        ("3.", "**Item 3:** Troisième chose"), ("3.", " \n3. Troisième chose"),
        ("3.", "1. Troisième chose"), ("1.", "1. Troisième chose"), ("", "1. Troisième chose"),
        ("12.", "12. Troisième chose"), ("b)", "b) Troisième chose"), ("a)", "a) Troisième chose"),
        ("-", "- Troisième chose"), ("•", "• Troisième chose"), ("*", "* Troisième chose"),
        ("3. Third thing:", "Third thing: Troisième chose"),
        ("3. Third thing:", "3. Third thing: Troisième chose"),
        ("3. Third thing:", "3. Troisième chose"),
    ],
)  # fmt: skip
def test_a_mark_that_is_there_already_is_taken_away(mark: str, text: str) -> None:
    assert stripped(mark, "Third thing", text) == "Troisième chose"


@pytest.mark.parametrize(
    ("mark", "item", "text"),
    [
        ("3.", "May 3rd", "3. Mai"),
        ("3.", "a length", "3.5 metres"),
        ("3.", "a time", "3:30"),
        ("3.", "a year", "2003. That was it."),
        ("3.", "How many?", "3."),
        ("1.", "Synonyms of big", "1. large\n2. huge"),
        ("1.", "Synonyms of big", "1. large\n   as in a large house\n2. huge"),
        ("3.", "Synonyms of big", "1) large\n2) huge"),
        ("-", "Synonyms of big", "- large\n- huge"),
        ("a)", "Synonyms of big", "a) large\nb) huge"),
        ("a.", "the dog", "a dog"),
        ("*", "the dog", "**dog** of the house"),
        ("-", "the cold", "-5 degrees"),
        ("3.", "the dog", "Item 4: no"),
        ("2. Paris:", "Paris", "Paris is a city: it"),
    ],
)
def test_what_may_be_meant_stays(mark: str, item: str, text: str) -> None:
    assert stripped(mark, item, text) == text


def test_text_without_a_mark_streams_from_its_second_word() -> None:
    assert ListMark("3.", "the dog").without("Der Hund", is_ended=False) == "Der Hund"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```text\nhigh\n```", "high\n```"),
        ("~~~\nhigh", "high"),
        ("```high```", "```high```"),
        ("```\n```", ""),
        ("```\n\n~~~\nmore", ""),
        ("`high`", "`high`"),
        ("high", "high"),
        ("```", "```"),
    ],
)
def test_a_fence_around_a_line_is_opened(text: str, expected: str) -> None:
    assert without_fence(text, is_ended=True) == expected
    early = [without_fence(text[:size], is_ended=False) for size in range(len(text) + 1)]
    assert all(expected.startswith(piece) for piece in early if piece is not None)
