"""llguidance: exact on bytes, fail-closed, and special tokens are no text to it.

The schema that it gets is a lowered one (``schema.lowered``). What it still refuses is left out
step by step, coarser each time, and recorded as residual.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from ....middleware.errors import HeadraceError, InvalidRequest, UnsupportedConstraint
from ....middleware.types import Constraint, Enforcement
from ..lower import Relax
from ..schema import Prepared, has_open_names, lowered, needs_escapes
from .base import Vocabulary

if TYPE_CHECKING:
    from llguidance import LLMatcher, LLParserLimits

NAME = "llguidance"
# Free whitespace lets a small model write blanks for ever, none makes it close arrays early. This
# is what json.dumps writes, with or without indentation.
WHITESPACE = r"\x20|\x0A\x20{0,16}"
_ESCAPES = 'nrbtf\\"'
_STEPS = 16  # schemas are compiled again after this many refusals at most


def json_options(schema: Any) -> dict[str, Any]:
    """Return the options under which llguidance reads a lowered schema."""
    options: dict[str, Any] = {
        "whitespace_pattern": WHITESPACE,
        "lenient": False,
        "coerce_one_of": False,
    }
    if has_open_names(schema) and not needs_escapes(schema):
        # It would take "\u0061" for a name other than "a", and so not hold its value to a's schema.
        options["json_allowed_escapes"] = _ESCAPES
    return options


class LLGuidance:
    """The engine for everything that others are not asked for."""

    name = NAME

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def compile(self, constraint: Constraint) -> LLTemplate:
        """See ``Engine.compile``."""
        if constraint.kind != "json_schema":
            residual: list[str] = []
            matcher = self._tried(self._grammar(constraint, residual))
            if matcher.is_error():
                raise _error(constraint, matcher.get_error())
            return LLTemplate(matcher, self._vocabulary, tuple(residual))
        matcher, prepared = self.compile_schema(_text(constraint))
        return LLTemplate(matcher, self._vocabulary, prepared.residual)

    def compile_schema(self, spec: str, **options: Any) -> tuple[LLMatcher, Prepared]:
        """Compile a schema, leaving out what is refused; returns what it was compiled from."""
        relax, message = Relax(), ""
        for _ in range(_STEPS):
            prepared = lowered(spec, relax)
            matcher = self._matcher(_json_grammar(prepared.schema, options))
            if not matcher.is_error():
                if has_open_names(prepared.schema) and needs_escapes(prepared.schema):
                    prepared = replace(prepared, residual=(*prepared.residual, "/properties"))
                return matcher, prepared
            message = matcher.get_error()
            if (more := self._relaxed(relax, message, prepared)) is None:
                raise _error(Constraint("json_schema", spec), message)
            relax = more
        raise _error(Constraint("json_schema", spec), message)

    def _grammar(self, constraint: Constraint, residual: list[str]) -> str:
        """Return the grammar of a constraint other than a schema; fields may leave a residual."""
        from llguidance import LLMatcher

        spec = constraint.spec
        if constraint.kind == "choice":
            if isinstance(spec, str) or not spec:
                raise InvalidRequest(f"a choice needs texts to choose from, got {spec!r:.80}")
            return LLMatcher.grammar_from_regex("|".join(f"(?:{_literal(text)})" for text in spec))
        text = _text(constraint)
        if constraint.kind == "regex":
            return LLMatcher.grammar_from_regex(text)
        if constraint.kind == "grammar":
            return LLMatcher.grammar_from_lark(text)
        from ..lark import template_grammar

        def schema_of(field: str) -> str:
            prepared = self.compile_schema(field)[1]
            residual.extend(prepared.residual)
            schema = {} if prepared.schema is True else cast("dict[str, Any]", prepared.schema)
            return json.dumps({**schema, "x-guidance": json_options(schema)})

        return LLMatcher.grammar_from_lark(template_grammar(text, schema_of))

    def _matcher(self, grammar: str) -> LLMatcher:
        from llguidance import LLMatcher

        return LLMatcher(self._vocabulary.ll, grammar, log_level=0, limits=_limits())

    def _tried(self, grammar: str) -> LLMatcher:
        """Compile a grammar, and make its first mask: some fail only there."""
        matcher = self._matcher(grammar)
        trial = matcher.deep_copy()
        if not trial.is_error():
            trial.compute_bitmask()
        return trial if trial.is_error() else matcher

    def _relaxed(self, relax: Relax, message: str, prepared: Prepared) -> Relax | None:
        """Return what to leave out next, None when nothing would help."""
        if "oneOf constraints" in message and not relax.one_of:
            return replace(relax, one_of=True)
        if "patternProperty regex" in message and not relax.pattern_properties:
            return replace(relax, pattern_properties=True)
        if "min/maxProperties" in message and not relax.counts:
            return replace(relax, counts=True)
        place = re.search(r"nsatisfiable.*\n?.*processing json-schema:\S*/(d\d+)$", message)
        if place and place[1] not in relax.empty:
            return replace(relax, empty=relax.empty | {place[1]})
        if re.search(r"multiple|[Dd]ecimal", message) and not relax.multiples:
            return replace(relax, multiples=True)
        if "circular references" in message or "too large" in message or "stack level" in message:
            if not relax.inline and "circular" in message:
                return replace(relax, inline=True)
            if not relax.rewrites:
                return replace(relax, rewrites=True)
            return None if relax.siblings else replace(relax, siblings=True)
        bad = {pattern for pattern in prepared.patterns if not self._can_match(pattern)}
        if bad - relax.patterns:
            return replace(relax, patterns=relax.patterns | bad)
        if "regex is empty" in message and not relax.patterns >= prepared.patterns:
            return replace(relax, patterns=relax.patterns | prepared.patterns)
        return None

    def _can_match(self, pattern: str) -> bool:
        schema = {"type": "string", "pattern": f"^(?:{pattern})$"}
        return not self._matcher(_json_grammar(schema, {})).is_error()


class LLTemplate:
    """A constraint as llguidance has compiled it."""

    def __init__(
        self, matcher: LLMatcher, vocabulary: Vocabulary, residual: tuple[str, ...]
    ) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary
        self.enforcement = Enforcement("partial" if residual else "full", residual, NAME)

    def start(self) -> LLGuidanceMatcher:
        """See ``Template.start``."""
        return LLGuidanceMatcher(self._matcher.deep_copy(), self._vocabulary, self.enforcement)


class LLGuidanceMatcher:
    """Where one answer stands; see ``Matcher``."""

    def __init__(
        self, matcher: LLMatcher, vocabulary: Vocabulary, enforcement: Enforcement
    ) -> None:
        self._matcher = matcher
        self._vocabulary = vocabulary
        self._has_ended = False
        self.enforcement = enforcement

    @property
    def is_complete(self) -> bool:
        """Whether the answer may end here."""
        return self._matcher.is_accepting()

    @property
    def is_finished(self) -> bool:
        """Whether the answer is complete and nothing can follow."""
        return self._has_ended or (self._matcher.is_stopped() and not self._matcher.is_error())

    def mask(self) -> bytes:
        """See ``Matcher.mask``."""
        if self._has_ended:
            return self._vocabulary.end_mask
        mask = self._matcher.compute_bitmask()
        if self._matcher.is_error():  # such a mask allows the answer to end
            raise UnsupportedConstraint(
                f"the constraint became too complex: {reason(self._matcher.get_error())};"
                " simplify it or lower its bounds"
            )
        return mask

    def forced(self) -> list[int]:
        """See ``Matcher.forced``."""
        if self._has_ended or self._matcher.is_stopped():
            return []
        return self._matcher.compute_ff_tokens()

    def copy(self) -> LLGuidanceMatcher:
        """See ``Matcher.copy``."""
        other = LLGuidanceMatcher(self._matcher.deep_copy(), self._vocabulary, self.enforcement)
        other._has_ended = self._has_ended
        return other

    def advance(self, token: int) -> None:
        """See ``Matcher.advance``."""
        if self._has_ended:
            return
        if token in self._vocabulary.eos and self._matcher.is_accepting():
            self._has_ended = True
        elif not self._matcher.consume_token(token):
            raise UnsupportedConstraint(
                f"token {token} does not fit the constraint: {reason(self._matcher.get_error())}"
            )


def _limits() -> LLParserLimits:
    from llguidance import LLParserLimits

    # A lexer's state takes 1 to 2 kB, and every row has its own.
    return LLParserLimits(max_lexer_states=50_000, verbose_errors=False)


def _text(constraint: Constraint) -> str:
    if not isinstance(constraint.spec, str):
        raise InvalidRequest(
            f"a {constraint.kind} constraint needs text, got {constraint.spec!r:.80}"
        )
    return constraint.spec


def _json_grammar(schema: Any, options: dict[str, Any]) -> str:
    from llguidance import LLMatcher

    given: Any = {} if schema is True else schema
    overrides = {**json_options(given), **options}
    try:
        return LLMatcher.grammar_from_json_schema(given, overrides=cast("Any", overrides))
    except HeadraceError:
        raise
    except (ValueError, OverflowError) as error:  # a number too large for the automaton
        raise UnsupportedConstraint(
            f"the automaton cannot hold the constraint: {error!s:.120}"
        ) from error


def _literal(text: str) -> str:
    """Return the text as a pattern: everything but letters and digits by its code point."""
    return "".join(c if c.isalnum() else f"\\x{{{ord(c):X}}}" for c in text)


def reason(message: str) -> str:
    """Return the one line of an error message that says what is wrong."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    found = next((line for line in lines if line.startswith("error: ")), None)
    text = found or next((line for line in lines if line != "<state>"), "no reason given")
    return re.sub(r"^(error: |at \d+\(\d+\): )", "", text)[:200]


_UNSUPPORTED = re.compile(r"look-?around|backreference|unimplemented|not supported|unknown format")


def _error(constraint: Constraint, message: str) -> HeadraceError:
    why = reason(message)
    what = f"{constraint.kind} constraint {constraint.spec!r:.100}"
    if "NoExtensionBias" in message:
        return InvalidRequest(f"nothing fits the {what}")
    if "panic" in message:
        return UnsupportedConstraint(f"the {what} is too large for its compiler; simplify it")
    if constraint.kind in ("grammar", "template"):
        place = re.match(r"(?:at )?(\d+)\((\d+)\): (.*)", why)
        if place:
            why = f"line {place[1]}, column {place[2]}: {place[3]}"
        return InvalidRequest(f"cannot compile the {what}: {why}")
    if _UNSUPPORTED.search(message.lower()):
        return UnsupportedConstraint(f"cannot enforce the {what}: {why}")
    if constraint.kind == "regex" or re.search(r"parse error|[Uu]nsatisfiable|[Ii]nvalid", message):
        return InvalidRequest(f"cannot compile the {what}: {why}")
    return UnsupportedConstraint(f"cannot enforce the {what}: {why}")
