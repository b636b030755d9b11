"""What ``Plan`` does with a request, decided before any call: plain data, no clock, no engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ..planners import Mode, fitting_nodes, forbidden, route
from ..planners.graph import MAX_TITLE, Item, same_title
from ..planners.graph import Plan as Graph
from ..planners.listed import Listed, find_items, is_sure
from ..planners.mapping import item_pieces
from ..planners.slots import Slot, is_room
from .errors import InvalidRequest
from .plan_forms import Form, Whole, array_form, form_of
from .types import Request, Text

Strategy = Literal["auto", "map", "template", "skeleton", "graph", "decide", "sot", "off"]


@dataclass(frozen=True)
class Choice:
    """How a request is answered, and why.

    ``how`` is "plain" (one call, as it came), "slots" (no planner: ``pieces``), "outline" (no
    planner: ``graph``), "plan" (the planner first, in ``mode``), "decide" (the model plans or
    answers) or "sot". ``form`` is there where the slots make up a constraint.
    """

    how: Literal["plain", "slots", "outline", "plan", "decide", "sot"]
    why: str
    strategy: Strategy
    mode: Mode = "skeleton"
    pieces: Sequence[str | Slot] = ()
    form: Form | None = None
    graph: Graph | None = None


def choose(
    request: Request, strategy: Strategy, *, max_nodes: int, outline: tuple[str, ...] = ()
) -> Choice:
    """Return what to do with the request. Costs well under a millisecond and asks no engine."""

    def plain(why: str) -> Choice:
        return Choice("plain", why, strategy)

    if strategy == "off":
        return plain("switched off")
    is_divided = strategy in ("map", "template")
    if why := forbidden(request, constrained=is_divided):
        return plain(why)
    limit = request.sampling.max_tokens
    if outline and strategy in ("auto", "template"):
        if request.constraint is not None:
            return plain("the output has a constraint beside the outline")
        if fitting_nodes(limit, len(outline)) < len(outline):
            return plain(f"max_tokens of {limit} is too small for {len(outline)} sections")
        return Choice("outline", "the outline is given", strategy, graph=graph_of(outline))
    if strategy in ("auto", "map"):
        listed = _listed(request)
        if listed is None and strategy == "map":
            return plain("no list of items was found in the prompt")
        if listed is not None and (strategy == "map" or _is_surely_mapped(request, listed)):
            return _mapped(request, listed, strategy)
    if strategy == "template":
        try:
            form = form_of(request)
        except Whole as error:
            return plain(str(error))
        if not is_room(form.pieces, limit):
            return plain(f"max_tokens of {limit} is too small to divide")
        return Choice(
            "slots", "the fields are independent", strategy, pieces=form.pieces, form=form
        )
    if strategy == "auto":
        found = route(request)
        if found.is_unsure:
            return Choice("decide", found.why, strategy, mode="graph")
        return Choice("plan", found.why, strategy) if found.is_planned else plain(found.why)
    if fitting_nodes(limit, max_nodes) < 2:
        return plain(f"max_tokens of {limit} is too small to divide")
    if strategy == "decide":
        return Choice("decide", "asked for", strategy, mode="graph")
    if strategy == "sot":
        return Choice("sot", "asked for", strategy)
    mode: Mode = "graph" if strategy == "graph" else "skeleton"
    return Choice("plan", "asked for", strategy, mode=mode)


def _mapped(request: Request, listed: Listed, strategy: Strategy) -> Choice:
    why, limit = f"the prompt lists {len(listed.items)} items", request.sampling.max_tokens
    small = f"max_tokens of {limit} is too small for {len(listed.items)} items"
    if request.constraint is None:
        pieces = item_pieces(request, listed)
        if not is_room(pieces, limit):
            return Choice("plain", small, strategy)
        return Choice("slots", why, strategy, pieces=pieces)
    if request.constraint.kind != "json_schema":
        return Choice("plain", "the output has a constraint that is no array", strategy)
    try:
        form = array_form(request, listed)
    except Whole as error:
        return Choice("plain", str(error), strategy)
    if not is_room(form.pieces, limit):
        return Choice("plain", small, strategy)
    return Choice("slots", why, strategy, pieces=form.pieces, form=form)


def _listed(request: Request) -> Listed | None:
    parts = request.messages[-1].parts
    if len(parts) != 1 or not isinstance(parts[0], Text) or parts[0].fields:
        return None
    return find_items(parts[0].text)


def _is_surely_mapped(request: Request, listed: Listed) -> bool:
    """Whether nobody has to ask for ``map`` by name: nothing else says what the answer is like."""
    is_alone = len(request.messages) == 1 and request.constraint is None
    return is_alone and is_sure(request.messages[0].text, listed)


def graph_of(outline: Sequence[str]) -> Graph:
    """Return the plan of an outline, each title as it is given. Raises InvalidRequest."""
    titles = [" ".join(title.split()) for title in outline]
    names = [same_title(title) for title in titles]
    if not 2 <= len(titles) <= 99:
        raise InvalidRequest(f"an outline has 2 to 99 titles, got {len(titles)}")
    for title, name in zip(titles, names, strict=True):
        if not name or len(title) > MAX_TITLE:
            raise InvalidRequest(
                f"a title of the outline has words and at most {MAX_TITLE} characters, got "
                f"{title!r:.60}"
            )
        if names.count(name) > 1:
            raise InvalidRequest(f"the outline has the title {title!r:.60} twice; name each once")
    items = (Item(title, key) for key, title in enumerate(titles, 1))
    return Graph.of(items, max_nodes=len(titles))


def check_strategy(strategy: str) -> None:
    """Raise InvalidRequest for a strategy that does not exist."""
    if strategy not in get_args(Strategy):
        names = ", ".join(get_args(Strategy))
        raise InvalidRequest(f"strategy must be one of {names}, got {strategy!r}")
