from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.backends.decoding.stream import Detokenizer, StopFilter
from headrace.backends.local import LocalModel


@pytest.mark.model
@pytest.mark.parametrize(
    "text", ["漢字 🙂 é", "  two  spaces\n\n\ttab", "12345 don't", "👩‍👩‍👧 नमस्ते ñ", ""]
)
def test_pieces_of_any_script_join_to_the_text(
    text: str, local: LocalModel, tokenizer: Any
) -> None:
    detokenizer = Detokenizer(local.decode)
    pieces = [detokenizer.push(token) for token in tokenizer(text)["input_ids"]]
    pieces.append(detokenizer.flush())
    assert "".join(pieces) == text
    assert not any("\ufffd" in piece for piece in pieces)


@pytest.mark.model
def test_a_character_cut_at_the_end_is_dropped(local: LocalModel, tokenizer: Any) -> None:
    tokens = tokenizer("ok 漢")["input_ids"]
    detokenizer = Detokenizer(local.decode)
    assert len(tokenizer("漢")["input_ids"]) > 1
    assert "".join(map(detokenizer.push, tokens[:-1])) + detokenizer.flush() == "ok "


@pytest.mark.model
def test_a_bad_byte_in_the_middle_does_not_hold_back_the_rest(
    local: LocalModel, tokenizer: Any
) -> None:
    broken = tokenizer("漢")["input_ids"][0]
    detokenizer = Detokenizer(local.decode)
    pieces = [detokenizer.push(token) for token in [broken, *tokenizer(" fine")["input_ids"]]]
    assert "".join(pieces).endswith(" fine")


def reference(text: str, stops: list[str]) -> str:
    at = min((text.find(stop) for stop in stops if stop in text), default=len(text))
    return text[:at]


@given(
    st.lists(st.text("ab", max_size=4), max_size=8),
    st.lists(st.text("ab", min_size=1, max_size=3), max_size=3),
)
def test_text_ends_before_the_first_stop_string_however_it_is_cut(
    pieces: list[str], stops: list[str]
) -> None:
    text = "".join(pieces)
    stop = StopFilter(stops)
    given_out = ""
    for piece in pieces:
        given_out += stop.push(piece)
        # Whatever was given out stays right: nothing of a stop string ever leaks.
        assert reference(text, stops).startswith(given_out)
        if stop.is_hit:
            break
    given_out += stop.flush()
    assert stop.is_hit == any(s in text for s in stops)
    if stop.is_hit:
        assert not any(s in given_out for s in stops)
        assert text.startswith(given_out)
    else:
        assert given_out == text


def test_a_replacement_character_that_was_written_stays() -> None:
    texts = {1: b"a", 2: "\ufffd".encode(), 3: "\u6c49".encode()[:2]}

    def decode(tokens: Sequence[int]) -> str:
        return b"".join(texts[token] for token in tokens).decode("utf-8", "replace")

    for tokens, expected in [((1, 2), "a\ufffd"), ((1, 2, 2), "a\ufffd\ufffd"), ((1, 3), "a")]:
        detokenizer = Detokenizer(decode, texts.__getitem__)
        text = "".join(detokenizer.push(token) for token in tokens)
        assert text + detokenizer.flush() == expected
