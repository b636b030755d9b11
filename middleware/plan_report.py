"""What ``Plan`` says in the report."""

from __future__ import annotations

from typing import Any

from ..planners import Node, PlannedAnswer, edges
from ..planners.outcome import decision, judged
from ..planners.predictor import Forecast
from ..planners.slots import slot_nodes
from ..planners.slotted import SlotsAnswer
from .plan_choice import Choice


def said(choice: Choice) -> dict[str, Any]:
    """Return what was chosen, as plain values."""
    return {"strategy": choice.strategy, "how": choice.how, "why": choice.why}


def planned_decision(answer: PlannedAnswer) -> str:
    """Return the report's few words on a planned answer."""
    return decision(answer)


def slots_decision(answer: SlotsAnswer) -> str:
    """Return the report's few words on an answer without a planner."""
    missing = answer.missing
    number = len(answer.works) - len(missing)
    if answer.failed is not None:
        number = answer.num_shown
        return (
            f"wrote {number} parts at the same time, without a planner, and those from "
            f"{answer.works[number].slot.name} on in one call"
        )
    rest = f", without {', '.join(missing)}" if missing else ""
    return f"wrote {number} parts at the same time, without a planner{rest}"


def node_facts(node: Node) -> dict[str, Any]:
    """Return what the plan says of a part, without its id and title."""
    return {
        "needs": list(node.needs),
        "agrees": list(node.agrees),
        "length": node.length,
        "difficulty": node.difficulty,
        "note": node.note,
    }


def spans(found: Forecast | None, at: float = 0.0) -> list[dict[str, float]]:
    """Return when each part was predicted to be written, in seconds since the request began."""
    if found is None:
        return []
    return [{"id": s.id, "start": at + s.start, "end": at + s.end} for s in found.spans]


def planned_facts(answer: PlannedAnswer) -> dict[str, Any]:
    """Return what happened, as plain values; times are seconds since the request began."""
    return {
        "nodes": [
            {
                "id": work.node.id,
                "title": work.node.title,
                **node_facts(work.node),
                "start": work.start,
                "end": work.end,
                "tokens": work.num_tokens,
                "retries": work.num_retries,
                "continued": work.is_continued,
                "finish_reason": work.finish_reason,
                "error": str(work.error) if work.error else None,
            }
            for work in sorted(answer.works, key=lambda work: work.node.id)
        ],
        "edges": edges(answer.plan),
        "predicted_spans": spans(answer.judgement.forecast, answer.judgement.at),
        "dropped_edges": list(answer.plan.dropped),
        "merged": answer.plan.num_merged,
        "contract": answer.plan.contract,
        "missing": answer.missing,
        "retries": answer.num_retries,
        "critical_path": answer.plan.critical_path,
        "plan_tokens": answer.plan_tokens,
        "plan_prompt_tokens": answer.plan_prompt_tokens,
        "plan_seconds": answer.plan_seconds,
        "plan_error": str(answer.plan_error) if answer.plan_error else None,
    } | judged(answer)


def slots_facts(answer: SlotsAnswer, found: Forecast | None = None) -> dict[str, Any]:
    """Return the same for an answer without a planner."""
    nodes = slot_nodes([work.slot for work in answer.works])
    return {
        "nodes": [
            {
                "id": at,
                "title": work.slot.name,
                **node_facts(node),
                "start": work.start,
                "end": work.end,
                "tokens": work.num_tokens,
                "retries": work.num_retries,
                "continued": False,
                "finish_reason": work.finish_reason,
                "error": str(work.error) if work.error else None,
            }
            for at, (node, work) in enumerate(zip(nodes, answer.works, strict=True), 1)
        ],
        "edges": [],
        "missing": answer.missing if answer.failed is None else [],
        "retries": sum(work.num_retries for work in answer.works),
        "plan_tokens": 0,
        "plan_seconds": 0.0,
        "predicted_spans": spans(found),
        "predicted_gain": found.gain if found else None,
        "predicted_seconds": found.parallel if found else None,
        "sequential_seconds": found.sequential if found else None,
        "actual_seconds": answer.calls.seconds,
    }
