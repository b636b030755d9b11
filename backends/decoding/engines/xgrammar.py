"""xgrammar: compiles what llguidance cannot, where it is known to hold every keyword.

It ignores many keywords silently. ``trusted`` is a scan of a lowered schema for those that it was
seen to hold; everything else counts as residual.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from ....middleware.errors import InvalidRequest, UnsupportedConstraint
from ....middleware.types import Constraint, Enforcement
from ..lower import Relax
from ..schema import lowered
from .base import Vocabulary

if TYPE_CHECKING:
    import torch
    from xgrammar import CompiledGrammar, GrammarMatcher

NAME = "xgrammar"
INSTALL = "pip install 'headrace[xgrammar]'"
WHITESPACE = 8  # characters at most, of any kind
# Held exactly, by random texts of its own and by JSON-Schema-Test-Suite. Not among them: patterns
# (a dot takes a newline), lengths (an escape counts twice), formats, allOf, oneOf, const objects.
_HELD = frozenset(
    {"$ref", "$defs", "type", "enum", "anyOf", "properties", "required", "additionalProperties"}
    | {"items", "prefixItems", "minItems", "maxItems", "minProperties", "maxProperties"}
)
# Held only where the type is this one and no other.
_OF_TYPE = {
    "object": {"properties", "required", "additionalProperties", "minProperties", "maxProperties"},
    "array": {"items", "prefixItems", "minItems", "maxItems"},
}
_ALONE = frozenset({"$ref", "anyOf", "enum"})  # siblings of these are ignored


class XGrammar:
    """The engine from the ``xgrammar`` package."""

    name = NAME

    def __init__(self, vocabulary: Vocabulary) -> None:
        xgr = _library()
        self._vocabulary = vocabulary
        info = xgr.TokenizerInfo(
            _pieces(vocabulary),
            xgr.VocabType.RAW,
            vocab_size=vocabulary.width,
            stop_token_ids=[*vocabulary.eos],
        )
        self._lock = Lock()
        self._compiler = xgr.GrammarCompiler(
            info, max_threads=1, cache_enabled=False, enable_dynamic_compilation=True
        )

    def compile(self, constraint: Constraint) -> XGTemplate:
        """See ``Engine.compile``."""
        try:
            with self._lock:
                compiled, residual = self._compiled(constraint)
        except RuntimeError as error:
            # Without the time and the line of its source that it puts in front.
            why = re.sub(r"^\[[\d:]+\] \S+: ", "", " ".join(str(error).split()))
            raise UnsupportedConstraint(
                f"xgrammar cannot hold the {constraint.kind} constraint: {why:.200}"
            ) from error
        return XGTemplate(compiled, self._vocabulary, residual)

    def _compiled(self, constraint: Constraint) -> tuple[CompiledGrammar, tuple[str, ...]]:
        spec = constraint.spec
        if constraint.kind == "json_schema" and isinstance(spec, str):
            prepared = lowered(spec, Relax())
            doubtful = map(prepared.place, untrusted(prepared.schema))
            residual = tuple(dict.fromkeys((*prepared.residual, *doubtful)))
            schema: Any = {} if prepared.schema is True else prepared.schema
            compiled = self._compiler.compile_json_schema(
                json.dumps(schema),
                any_whitespace=True,
                strict_mode=False,
                max_whitespace_cnt=WHITESPACE,
            )
            return compiled, residual
        if constraint.kind == "regex" and isinstance(spec, str):
            return self._compiler.compile_regex(spec), ("/",)  # its dialect differs in places
        if constraint.kind == "choice" and not isinstance(spec, str) and spec:
            rules = " | ".join(_quoted(text) for text in spec)
            return self._compiler.compile_grammar(f"root ::= {rules}"), ()
        if constraint.kind in ("grammar", "template"):
            raise UnsupportedConstraint(
                f"xgrammar does not read a {constraint.kind}; leave engine='auto'"
            )
        raise InvalidRequest(f"no {constraint.kind} constraint: {spec!r:.80}")


def trusted(schema: Any) -> bool:
    """Whether xgrammar holds every keyword of a lowered schema."""
    return next(untrusted(schema), None) is None


def untrusted(schema: Any, pointer: str = "") -> Iterator[str]:
    """Yield the places of keywords, in a lowered schema, that xgrammar may not hold."""
    if isinstance(schema, bool):
        if not schema:
            yield pointer or "/"
        return
    given = cast("dict[str, Any]", schema)
    for alone in sorted(_ALONE & given.keys()):
        if given.keys() - {alone, "type", "$defs"}:
            yield f"{pointer}/{alone}"
    for kind, keywords in _OF_TYPE.items():
        if given.keys() & keywords and given.get("type") != [kind]:
            yield f"{pointer}/type"
    lists = given.keys() & {"properties", "required"}
    if lists and given.get("additionalProperties") is not False:
        yield f"{pointer}/additionalProperties"  # a listed name is also taken for another one
    missing = {*given.get("required", ())} - given.get("properties", {}).keys()
    if missing:
        yield f"{pointer}/required"
    items: list[tuple[str, Any]] = list(given.items())
    for keyword, value in items:
        below = f"{pointer}/{keyword}"
        if keyword not in _HELD:
            yield below
        elif keyword in ("properties", "$defs"):
            for name, one in value.items():
                yield from untrusted(one, f"{below}/{name}")
        elif keyword in ("anyOf", "prefixItems"):
            for at, one in enumerate(value):
                yield from untrusted(one, f"{below}/{at}")
        elif keyword == "items" or (keyword == "additionalProperties" and value is not False):
            yield from untrusted(value, below)
        elif keyword == "enum" and not all(map(_is_simple, given["enum"])):
            yield below


def _is_simple(value: Any) -> bool:
    return not isinstance(value, (dict, list, float))


class XGTemplate:
    """A constraint as xgrammar has compiled it."""

    def __init__(
        self, compiled: CompiledGrammar, vocabulary: Vocabulary, residual: tuple[str, ...]
    ) -> None:
        self._compiled = compiled
        self._vocabulary = vocabulary
        self.enforcement = Enforcement("partial" if residual else "full", residual, NAME)

    def start(self) -> XGMatcher:
        """See ``Template.start``."""
        import xgrammar

        matcher = xgrammar.GrammarMatcher(self._compiled)
        return XGMatcher(matcher, self._vocabulary, self.enforcement)


class XGMatcher:
    """Where one answer stands; see ``Matcher``."""

    def __init__(
        self, matcher: GrammarMatcher, vocabulary: Vocabulary, enforcement: Enforcement
    ) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._has_ended = False
        self._last: list[int] = []  # tokens, context for the next ones
        self._buffer: torch.Tensor | None = None
        self.enforcement = enforcement

    @property
    def is_complete(self) -> bool:
        """Whether the answer may end here."""
        return self._has_ended or self._matcher.is_completed()

    @property
    def is_finished(self) -> bool:
        """Whether the answer is complete and nothing can follow."""
        return self._has_ended or (self.is_complete and self._is_only_end())

    def mask(self) -> bytes:
        """See ``Matcher.mask``."""
        if self._has_ended:
            return self._vocabulary.end_mask
        import xgrammar

        if self._buffer is None:
            self._buffer = xgrammar.allocate_token_bitmask(1, self._vocabulary.width)
        xgrammar.reset_token_bitmask(self._buffer)
        self._matcher.fill_next_token_bitmask(self._buffer)
        return self._buffer.numpy().tobytes()

    def _is_only_end(self) -> bool:
        return int.from_bytes(self.mask(), "little") == int.from_bytes(
            self._vocabulary.end_mask, "little"
        )

    def forced(self) -> list[int]:
        """See ``Matcher.forced``."""
        if self._has_ended or self.is_complete:
            return []
        text = self._matcher.find_jump_forward_string().encode("utf-8", "ignore")
        if not text:
            return []
        tokens, _ = self._vocabulary.ll.tokenize_partial(text, recent_tokens=self._last)
        return tokens

    def advance(self, token: int) -> None:
        """See ``Matcher.advance``."""
        if self._has_ended:
            return
        if token in self._vocabulary.eos and self._matcher.is_completed():
            self._has_ended = True
        elif token in self._vocabulary.eos or not self._matcher.accept_token(token):
            raise UnsupportedConstraint(f"token {token} does not fit the constraint")
        else:
            self._last = [*self._last[-7:], token]

    def copy(self) -> XGMatcher:
        """See ``Matcher.copy``."""
        other = XGMatcher(self._matcher.fork(), self._vocabulary, self.enforcement)
        other._has_ended = self._has_ended
        other._last = self._last
        return other


def _library() -> Any:
    try:
        import xgrammar
    except ImportError as error:
        raise UnsupportedConstraint(
            f"the engine 'xgrammar' is not installed; {INSTALL}, or leave engine='auto'"
        ) from error
    return xgrammar


def is_installed() -> bool:
    """Whether the ``xgrammar`` package can be imported."""
    from importlib.util import find_spec

    try:
        return find_spec("xgrammar") is not None
    except ValueError:  # it was tried, and failed
        return False


def _pieces(vocabulary: Vocabulary) -> list[bytes]:
    """Return what each token writes; nothing for special ones, which are then never allowed."""
    ll = vocabulary.ll
    return [
        b"" if ll.is_special_token(token) else ll.decode_bytes([token])
        for token in range(vocabulary.width)
    ]


def _quoted(text: str) -> str:
    return '"' + "".join(c if c.isalnum() else f"\\U{ord(c):08X}" for c in text) + '"'
