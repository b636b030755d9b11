"""Constraints to automata over a model's tokens: chosen, compiled once, kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from copy import copy
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from ...middleware.errors import InvalidRequest, UnsupportedConstraint
from ...middleware.types import Constraint, Enforcement
from .engines.base import Engine, Matcher, Template, Vocabulary
from .engines.llguidance import LLGuidance
from .weight import MAX_WEIGHT, weight

if TYPE_CHECKING:
    from llguidance import LLMatcher

EngineName = Literal["auto", "llguidance", "xgrammar", "outlines_core"]
_CACHED = 256


class Compiler:
    """Compiles constraints for one tokenizer. Safe to share between threads.

    ``width`` is the number of logits, which may be more than the tokenizer has tokens: the rest
    is never allowed. ``eos`` are the ids that end an answer. Costs 0.5 s and 60 MB once for
    49,152 tokens; a constraint costs milliseconds the first time, and a copy afterwards.

    ``engine`` "auto" is llguidance, and xgrammar (if installed) for a schema that llguidance
    cannot hold and xgrammar can. What may take long or much memory is compiled in a process of
    its own first, within limits.
    """

    def __init__(
        self, tokenizer: Any, width: int, eos: Sequence[int], *, engine: EngineName = "auto"
    ) -> None:
        self._engine = _checked(engine)
        self._vocabulary = Vocabulary.of(tokenizer, width, eos)
        self.width = self._vocabulary.width
        self._engines: dict[str, Engine] = {}
        self._results: OrderedDict[Any, Future[Any]] = OrderedDict()
        self._lock = Lock()
        self._engine_lock = Lock()

    def matcher(self, constraint: Constraint) -> Matcher:
        """Return a fresh matcher at the start of the constraint.

        Raises InvalidRequest when the constraint makes no sense (no JSON schema, a regular
        expression that does not parse, nothing can match) and UnsupportedConstraint when it
        makes sense but no automaton can hold it, naming the part. A second call while the first
        still compiles waits for it.
        """
        return self._template(constraint).start()

    def enforcement(self, constraint: Constraint) -> Enforcement:
        """Return how far answers are held to the constraint; compiles it. Raises as ``matcher``."""
        return self._template(constraint).enforcement

    def with_engine(self, engine: EngineName) -> Compiler:
        """Return a compiler for the same tokenizer that uses this engine; it starts empty."""
        other = copy(self)
        other._engine = _checked(engine)
        other._results, other._lock = OrderedDict(), Lock()
        return other

    def bytes_of(self, token: int) -> bytes:
        """Return the bytes that a token writes."""
        return self._vocabulary.ll.decode_bytes([token])

    def tokens_of(self, text: bytes) -> list[int]:
        """Return the tokens that the model would write for a text."""
        return self._vocabulary.ll.tokenize_bytes(text)

    def compact(self, constraint: Constraint) -> LLMatcher | None:
        """Return an automaton of a JSON schema without any whitespace, None for other kinds."""
        if constraint.kind != "json_schema" or not isinstance(constraint.spec, str):
            return None
        spec = constraint.spec
        engine = cast("LLGuidance", self._made("llguidance"))
        options: dict[str, Any] = {"whitespace_flexible": False, "whitespace_pattern": None}

        def compile_() -> LLMatcher | None:
            try:
                return engine.compile_schema(spec, **options)[0]
            except UnsupportedConstraint:
                return None

        compact = cast("LLMatcher | None", self._once(("compact", constraint), compile_))
        return None if compact is None else compact.deep_copy()

    def _template(self, constraint: Constraint) -> Template:
        key = (self._engine, constraint)
        return cast("Template", self._once(key, lambda: self._compiled(constraint)))

    def _once(self, key: Any, compile_: Callable[[], Any]) -> Any:
        """Return what ``compile_`` gives, called once for a key however many threads ask."""
        with self._lock:
            found = self._results.get(key)
            future: Future[Any] = found or Future()
            self._results[key] = future
            self._results.move_to_end(key)
            while len(self._results) > _CACHED:
                self._results.popitem(last=False)
        if found is None:
            try:
                future.set_result(compile_())
            except BaseException as error:
                future.set_exception(error)
                if not isinstance(error, (InvalidRequest, UnsupportedConstraint)):
                    with self._lock:  # it may go well another time
                        self._results.pop(key, None)
        failure = future.exception()
        if failure is not None:
            raise type(failure)(*failure.args) from failure  # one of our own for each caller
        return future.result()

    def _compiled(self, constraint: Constraint) -> Template:
        self._try_out(constraint)
        if self._engine != "auto":
            return self._made(self._engine).compile(constraint)
        template: Template | None = None
        refused: UnsupportedConstraint | None = None
        try:
            template = self._made("llguidance").compile(constraint)
        except UnsupportedConstraint as error:
            refused = error
        if (template is None or template.enforcement.level != "full") and _suits_xgrammar(
            constraint
        ):
            return self._made("xgrammar").compile(constraint)
        if template is None:
            raise refused or UnsupportedConstraint("no engine holds the constraint")
        return template

    def _try_out(self, constraint: Constraint) -> None:
        if self._engine != "outlines_core" and weight(constraint) > MAX_WEIGHT:
            from .worker import try_out

            try_out(self._vocabulary, constraint)

    def _made(self, name: str) -> Engine:
        with self._engine_lock:
            if name not in self._engines:
                self._engines[name] = _make(name, self._vocabulary)
            return self._engines[name]


def _checked(engine: EngineName) -> EngineName:
    if engine not in get_args(EngineName):
        names = ", ".join(get_args(EngineName))
        raise InvalidRequest(f"an engine is one of {names}, got {engine!r:.40}")
    return engine


def _make(name: str, vocabulary: Vocabulary) -> Engine:
    if name == "xgrammar":
        from .engines.xgrammar import XGrammar

        return XGrammar(vocabulary)
    if name == "outlines_core":
        from .engines.outlines_core import OutlinesCore

        return OutlinesCore(vocabulary)
    return LLGuidance(vocabulary)


def _suits_xgrammar(constraint: Constraint) -> bool:
    from .engines.xgrammar import is_installed, trusted
    from .schema import lowered

    if constraint.kind != "json_schema" or not is_installed():
        return False
    prepared = lowered(cast("str", constraint.spec))
    return not prepared.residual and trusted(prepared.schema)
