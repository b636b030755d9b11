"""What ``Plan`` can be asked for: everything else is said when the stage is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from ..planners.gate import When
from ..planners.speed import StepCost
from .cost.predict import Predictor
from .errors import InvalidRequest
from .plan_choice import graph_of

if TYPE_CHECKING:
    from .plan import Plan


def check_options(stage: Plan) -> None:
    """Raise InvalidRequest for a value that an option cannot have, with the value."""
    if stage.when not in get_args(When):
        raise InvalidRequest(f'when is "pays" or "always", got {stage.when!r:.40}')
    race: Any = stage.race
    seams: Any = stage.seams
    if not isinstance(race, bool | None):
        raise InvalidRequest(f"race is True, False or None (where free), got {race!r:.40}")
    if not isinstance(seams, bool):
        raise InvalidRequest(f"seams is True or False, got {seams!r:.40}")
    if type(stage.max_nodes) is not int or not 2 <= stage.max_nodes <= 99:
        raise InvalidRequest(f"max_nodes must be from 2 to 99, got {stage.max_nodes!r:.40}")
    if type(stage.width) is not int or stage.width < 1:
        raise InvalidRequest(f"width must be at least 1, got {stage.width!r:.40}")
    cost: Any = stage.cost
    if not isinstance(cost, Predictor | StepCost | None):
        raise InvalidRequest(
            f"cost is a Predictor (cost.predictor_of) or a StepCost, got {cost!r:.60}"
        )


def outline_of(outline: Any) -> tuple[str, ...]:
    """Return the titles of an outline. Raises InvalidRequest."""
    if isinstance(outline, str):
        raise InvalidRequest(f"an outline is a list of titles, got the text {outline!r:.60}")
    try:
        titles: tuple[Any, ...] = tuple(outline)
    except TypeError:
        raise InvalidRequest(f"an outline is a list of titles, got {outline!r:.60}") from None
    if others := [title for title in titles if not isinstance(title, str)]:
        raise InvalidRequest(f"an outline is a list of titles, got {others[0]!r:.60} in it")
    if titles:
        graph_of(titles)
    return titles
