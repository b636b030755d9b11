"""Tool schemas: the descriptions get shorter, what a call is made of does not change."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from ...middleware.errors import InvalidRequest
from ...middleware.subschemas import NAMED, VALUES
from ..budget import Budget
from ..render import Span, text_of
from ..scorers import Scorer, make_scorer
from ..select import select
from ..tokens import TokenCounter, make_counter
from .nodes import Path
from .values import Value, view_of
from .view import Stretch

_DATA = VALUES | {"example_value", "required"}
_DEEPEST = 200


def compress_tools(
    tools: Sequence[Mapping[str, Any]],
    budget: Budget,
    *,
    scorer: Scorer | None = None,
    counter: TokenCounter | None = None,
    question: str | None = None,
) -> list[dict[str, Any]]:
    """Return tools, or JSON Schemas, with shorter descriptions, within one budget for them all.

    ``tools`` are mappings in OpenAI's, Anthropic's or MCP's shape. The budget counts the tokens of
    the descriptions alone. A description keeps at least a word. Everything else is equal to
    what was given: names, types, enums, required, defaults, examples, ``$ref``, the order of keys;
    a property called "description" is a property. The given ones are not changed.

    Raises InvalidRequest for tools that are no list of mappings, or nested deeper than 200.
    """
    if isinstance(tools, (str, Mapping)) or not all(
        isinstance(tool, Mapping)  # pyright: ignore[reportUnnecessaryIsInstance]
        for tool in tools
    ):
        raise InvalidRequest(f"tools must be a list of mappings, got {tools!r:.80}")
    found = [(path, text) for path, text in _descriptions(tools) if text.strip()]
    short = _shortened(
        [text for _, text in found],
        budget,
        scorer or make_scorer(),
        counter or make_counter(),
        question,
    )
    texts = {path: new for (path, _), new in zip(found, short, strict=True)}
    return cast("list[dict[str, Any]]", _copy(tools, (), texts.get))


def _shortened(
    texts: Sequence[str],
    budget: Budget,
    scorer: Scorer,
    counter: TokenCounter,
    question: str | None,
) -> list[str]:
    """Shorten texts that share a budget, each of which keeps at least a word."""
    total = sum(counter.count_many(texts))
    if budget.keeps_all(total):
        return list(texts)
    views = [
        view_of(text, [Value(text, [Stretch(0, len(text), 0, len(text))])], ()) for text in texts
    ]
    rows = scorer.score([view.units for view in views], question)
    scored = [view.scored(row) for view, row in zip(views, rows, strict=True)]
    spans: Sequence[Sequence[Span]] = select(scored, budget, budget.limit(total), counter).spans
    return [text_of(text, own) for text, own in zip(texts, spans, strict=True)]


def _descriptions(value: object, path: Path = (), *, is_named: bool = False) -> Iterator[Any]:
    """Yield (path, text) of each description; ``is_named``: the keys are names, not keywords."""
    if len(path) > _DEEPEST:
        raise InvalidRequest(f"tools are nested deeper than {_DEEPEST}; is one part of itself?")
    if isinstance(value, Mapping):
        for key, inner in cast("Mapping[str, object]", value).items():
            if key == "description" and isinstance(inner, str) and not is_named:
                yield (*path, key), inner
            elif is_named or key not in _DATA:
                yield from _descriptions(
                    inner, (*path, key), is_named=key in NAMED and not is_named
                )
    elif isinstance(value, (list, tuple)):
        for place, inner in enumerate(cast("Sequence[object]", value)):
            yield from _descriptions(inner, (*path, place))


def _copy(value: object, path: Path, texts: Callable[[Path], str | None]) -> object:
    """Return a copy with the texts in their places."""
    if (new := texts(path)) is not None:
        return new
    if len(path) > _DEEPEST:
        return value  # data in a default
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value).items()
        return {key: _copy(inner, (*path, key), texts) for key, inner in items}
    if isinstance(value, (list, tuple)):
        rows = cast("Sequence[object]", value)
        copies = [_copy(inner, (*path, place), texts) for place, inner in enumerate(rows)]
        return tuple(copies) if isinstance(value, tuple) and path else copies
    return value
