"""What a caller may ask of headrace for one request, and the stages that this means."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Any, Literal, Self, cast

from . import parts
from .compress import Compress
from .errors import InvalidRequest
from .rerank import Rerank
from .sdk import document
from .shown import nearest, shown
from .transform import Transform
from .turns import Rates
from .types import Document

BUDGETS = ("rate", "target_tokens", "threshold", "quality")
COMPRESSORS = frozenset(("auto", "lexical", "mini", "sentences"))
METHODS = frozenset(("auto", "bm25", "mini"))
_TEXTS = ("compressor", "method", "question", "tokenizer", "last_user", "plan")
_FLAGS = ("off", "constrain", "stable")  # plan and constrain: of a proxy's policy

_Frozen = tuple[tuple[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Options:
    """What happens to a request before it is sent. Nothing, unless something is asked for.

    At most one of ``rate``, ``target_tokens``, ``threshold`` and ``quality`` is the budget; it and
    ``compressor``, ``tokenizer``, ``rates``, ``tools``, ``last_user``, ``stable``, ``every`` and
    ``keep`` are those of ``headrace.Compress``. ``documents`` are written into the last user
    message, the ``top_k`` best of them by ``method`` (as in ``headrace.rerank``), and cut within
    the budget. ``question`` says what all is read for; by default it is the last user message.
    ``off`` sends the request as it is.
    """

    off: bool = False
    rate: float | None = None
    target_tokens: int | None = None
    threshold: float | None = None
    quality: float | None = None
    compressor: str = "auto"
    tokenizer: str | None = None
    rates: _Frozen = ()
    tools: float | None = None
    last_user: Literal["keep", "context"] = "keep"
    stable: bool | None = None
    every: int | None = None
    keep: tuple[str | re.Pattern[str], ...] = ()
    documents: tuple[Document, ...] = ()
    top_k: int | None = None
    method: str = "auto"
    question: str = ""

    def __post_init__(self) -> None:
        _ = stages(self)  # what cannot be done is said now, also what nothing asks for yet
        parts.check_compressor(self.compressor)
        parts.check_method(self.method)
        parts.check_tokenizer(self.tokenizer)

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Read options from names and values. Raises InvalidRequest."""
        return cls().merged(given)

    def merged(self, given: Any, *, remote: bool = False) -> Self:
        """Return the options with those ``given`` put over them.

        A budget takes the place of another one. ``remote``: they come over the network, so they
        cannot name a model, a file or a pattern that these options do not name themselves.
        Raises InvalidRequest for an option that there is not, and for a value that cannot be.
        """
        if given is None:
            return self
        if not isinstance(given, Mapping):
            raise InvalidRequest(f"headrace takes an object of options, got {shown(given)}")
        given = cast("Mapping[str, Any]", given)
        names = [field.name for field in fields(self)]
        for name in given:
            if name not in names:
                raise InvalidRequest(
                    f"headrace has no option {name!r:.40}; {nearest(name, sorted(names))}"
                )
        values = {name: _read(name, value) for name, value in given.items()}
        if remote:
            self._check(values)
        if any(values.get(name) is not None for name in BUDGETS):
            values = dict.fromkeys(BUDGETS) | values
        try:
            return replace(self, **values)
        except TypeError as error:  # a number that is none
            raise InvalidRequest(f"an option of headrace has a wrong value: {error}") from error

    @property
    def is_idle(self) -> bool:
        """Whether nothing is asked for, so that a request is sent as it is."""
        return self.off or not (stages(self) or self.documents)

    def _check(self, values: Mapping[str, Any]) -> None:
        for name, known, own in (
            ("compressor", COMPRESSORS, self.compressor),
            ("method", METHODS, self.method),
        ):
            if values.get(name, own) not in known | {own}:
                raise InvalidRequest(
                    f"{name} is one of {_list(known | {own})} here, got {values[name]!r:.40};"
                    " others are named in the server's configuration"
                )
        for name in ("keep", "tokenizer"):
            if values.get(name, getattr(self, name)) != getattr(self, name):
                raise InvalidRequest(f"{name} is set in the server's configuration only")


def stages(options: Options) -> tuple[Transform, ...]:
    """Return the stages that the options mean; the same ones for the same options."""
    is_ranked = bool(options.documents) or options.top_k is not None
    return _stages(
        options.rate,
        options.target_tokens,
        options.threshold,
        options.quality,
        options.compressor,
        options.tokenizer,
        options.rates,
        options.tools,
        options.last_user,
        options.stable,
        options.every,
        options.keep,
        options.top_k,
        options.method if is_ranked else None,
    )


@lru_cache(maxsize=64)
def _stages(
    rate: float | None,
    target_tokens: int | None,
    threshold: float | None,
    quality: float | None,
    compressor: str,
    tokenizer: str | None,
    rates: _Frozen,
    tools: float | None,
    last_user: Literal["keep", "context"],
    stable: bool | None,
    every: int | None,
    keep: tuple[str | re.Pattern[str], ...],
    top_k: int | None,
    method: str | None,
) -> tuple[Transform, ...]:
    chain: list[Transform] = []
    if method is not None:
        chain.append(Rerank(top_k, method))
    has_budget = any(one is not None for one in (rate, target_tokens, threshold, quality))
    if has_budget or rates or tools is not None:
        chain.append(
            Compress(
                rate if has_budget else 1.0,
                target_tokens,
                threshold,
                quality,
                compressor=compressor,
                tokenizer=tokenizer,
                keep=keep,
                last_user=last_user,
                rates=_thawed(rates),
                stable=stable,
                every=every,
                tools=tools,
            )
        )
    return tuple(chain)


def _read(name: str, value: Any) -> Any:
    """Return an option's value as the dataclass holds it."""
    if name == "rates":
        return _frozen(value)
    if name in ("documents", "keep"):
        if not isinstance(value, (list, tuple)):
            raise InvalidRequest(f"{name} is a list, got {shown(value)}")
        each = cast("Sequence[Any]", value)
        for one in each if name == "documents" else ():
            if not isinstance(one, str | Mapping | Document):
                raise InvalidRequest(f"a document is a text or an object, got {shown(one)}")
        if name == "documents":
            return tuple(map(document, each))
        for one in each:
            if not isinstance(one, str | re.Pattern):
                raise InvalidRequest(f"keep has texts that are patterns, got {shown(one)}")
        return tuple(each)
    is_default = value is None and name in ("tokenizer", "stable")
    if name in _TEXTS and not (isinstance(value, str) or is_default):
        raise InvalidRequest(f"{name} is a text, got {shown(value)}")
    if name == "last_user" and value not in ("keep", "context"):
        raise InvalidRequest(f'last_user is "keep" or "context", got {shown(value)}')
    if name in _FLAGS and not (isinstance(value, bool) or is_default):
        raise InvalidRequest(f"{name} is true or false, got {shown(value)}")
    is_count = name in ("top_k", "every") and value is not None
    if is_count and (type(value) is not int or value < 1):
        raise InvalidRequest(f"{name} is a whole number from 1 on, got {shown(value)}")
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if name in (*BUDGETS, "tools") and value is not None and not is_number:
        raise InvalidRequest(f"{name} is a number, got {shown(value)}")
    return value


def _frozen(rates: Any) -> _Frozen:
    if not isinstance(rates, Mapping):
        raise InvalidRequest(f'rates is an object such as {{"tool": 0.3}}, got {shown(rates)}')
    pairs = cast("Mapping[str, Any]", rates).items()
    return tuple((role, _by_age(role, given)) for role, given in pairs)


def _by_age(role: str, given: Any) -> Any:
    """Return a rate, or pairs of an age and its rate; JSON writes an age as a text."""
    pairs: list[tuple[Any, Any]] = [*given.items()] if isinstance(given, Mapping) else [(0, given)]
    for _, rate in pairs:
        if not isinstance(rate, int | float) or isinstance(rate, bool):
            raise InvalidRequest(f"rates.{role} holds numbers from 0 to 1, got {shown(rate)}")
    if not isinstance(given, Mapping):
        return given
    return tuple(
        (int(age) if isinstance(age, str) and age.isdecimal() else age, rate) for age, rate in pairs
    )


def _thawed(rates: _Frozen) -> Rates:
    return {role: _ages(rate) for role, rate in rates}


def _ages(rate: Any) -> Any:
    return dict(cast("tuple[tuple[int, float], ...]", rate)) if isinstance(rate, tuple) else rate


def _list(names: Collection[str]) -> str:
    return ", ".join(sorted(names))
