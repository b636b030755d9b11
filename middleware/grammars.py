"""Context-free grammars: read, converted, and held against finished texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import HeadraceError, InvalidRequest, UnsupportedConstraint
from .gbnf import is_gbnf, lark_of
from .types import Constraint

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLTokenizer

MAX_CHAIN = 500  # rules, one behind the other; llguidance recurses and ends the process at 2,000
_EOS = 256
_PARTS = re.compile(
    r'"(?:\\.|[^"\\\n])*"|/(?:\\.|\[(?:\\.|[^\]\\])*\]|[^/\\\n])+/|//[^\n]*|%[a-z]+'
    r"|(?P<defined>[A-Za-z_]\w*)(?:\.\d+|\[[^\]\n]*\])?\s*:|(?P<used>[A-Za-z_]\w*)"
)
_CACHED = 64


def grammar(text: str | Path) -> Constraint:
    r"""Return the constraint that the output is a sentence of this grammar.

    ``text`` is a grammar in Lark as llguidance reads it (rules in small letters, terminals in
    capitals, ``%json {...}`` for a JSON schema; the first rule is ``start``), in GBNF (llama.cpp's
    form, the first rule is ``root``), or the Path of a .lark or .gbnf file. Raises InvalidRequest
    when it is none of them, with the place.

    >>> grammar('start: "yes" | "no" " "*').kind
    'grammar'
    """
    if isinstance(text, Path):
        return _from_file(text)
    if not isinstance(text, str) or not text.strip():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f"a grammar is a text in Lark or GBNF, got {text!r:.60}")
    text = text.removeprefix("\ufeff")
    if not is_gbnf(text) and "::=" in text and not re.search(r"(?m)^\s*[?!]?start\b.*:", text):
        raise InvalidRequest("a GBNF grammar begins with the rule root ::= ...; it has none")
    lark = lark_of(text) if is_gbnf(text) else text
    _check_chain(lark)
    if error := _template(lark).get_error():
        raise _unread(error)
    return Constraint("grammar", lark, str)


def num_valid(lark: str, text: str) -> tuple[int, bool]:
    """Return how many characters may begin a sentence of the grammar, and if all are a whole one.

    Raises InvalidRequest for a grammar that cannot be read.
    """
    _check_chain(lark)
    matcher = _template(lark).deep_copy()
    if error := matcher.get_error():
        raise _unread(error)
    data = text.encode("utf-8", "surrogatepass")
    taken = matcher.try_consume_tokens([*data])
    whole = data[:taken].decode("utf-8", "ignore")
    return len(whole), taken == len(data) and matcher.is_accepting()


def grammar_violation(lark: str, text: str) -> str | None:
    """Return what is wrong with the text in a few words, None when it is a sentence."""
    valid, is_whole = num_valid(lark, text)
    if is_whole:
        return None
    if valid == len(text):
        return "the text ends in the middle of the grammar's sentence"
    return f"{text[valid:]!r:.40} at character {valid} is not in the grammar"


def _from_file(path: Path) -> Constraint:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidRequest(f"cannot read the grammar {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InvalidRequest(f"the grammar {path} is no UTF-8 text") from None
    return grammar(_with_root(text) if path.suffix == ".gbnf" else text)


def _with_root(text: str) -> str:
    if not is_gbnf(text):
        raise InvalidRequest("a GBNF grammar begins with the rule root ::= ...; it has none")
    return text


@lru_cache(maxsize=_CACHED)
def _template(lark: str) -> LLMatcher:
    from llguidance import LLMatcher

    try:
        return LLMatcher(byte_tokenizer(), LLMatcher.grammar_from_lark(lark), log_level=0)
    except (ValueError, OverflowError) as error:
        raise InvalidRequest(f"the grammar cannot be read: {error!s:.160}") from None


@lru_cache(maxsize=1)
def byte_tokenizer() -> LLTokenizer:
    """Return a tokenizer whose tokens are the bytes: a check needs no model's."""
    from llguidance import LLTokenizer, TokenizerWrapper

    class Bytes:
        eos_token_id = _EOS
        bos_token_id = None
        tokens = (*(bytes([byte]) for byte in range(_EOS)), b"")
        special_token_ids = (_EOS,)

        def __call__(self, data: bytes) -> list[int]:
            return [*data]

    return LLTokenizer(TokenizerWrapper(Bytes()), n_vocab=_EOS + 1)


@lru_cache(maxsize=_CACHED)
def _check_chain(lark: str) -> None:
    """Raise UnsupportedConstraint when rules lead too deep, each followed the first time."""
    uses: dict[str, list[str]] = {}
    rule: list[str] = []
    for found in _PARTS.finditer(lark):
        if found["defined"]:
            rule = uses.setdefault(found["defined"], [])
        elif found["used"]:
            rule.append(found["used"])
    seen: set[str] = set()
    stack: list[Iterator[str]] = [iter(("start",))]
    while stack:
        if len(stack) > MAX_CHAIN:
            raise UnsupportedConstraint(
                f"the grammar's rules lead {MAX_CHAIN} deep, one behind the other; simplify it"
            )
        name = next(stack[-1], None)
        if name is None:
            stack.pop()
        elif name in uses and name not in seen:
            seen.add(name)
            stack.append(iter(uses[name]))


def _unread(error: str) -> HeadraceError:
    """Return what llguidance's error means, without its own words where they mean nothing."""
    if "NoExtensionBias" in error:
        return InvalidRequest("the grammar has no sentence: nothing fits it")
    if "panic" in error and "assertion failed" in error:
        return UnsupportedConstraint("the grammar is too large for its compiler; simplify it")
    return InvalidRequest(f"the grammar cannot be read: {_first_line(error)}")


def _first_line(message: str) -> str:
    line = next((line.strip() for line in message.splitlines() if line.strip()), "no reason given")
    return f"{line:.200}"
