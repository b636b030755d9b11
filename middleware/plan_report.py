"""What ``Plan`` says in the report."""

from __future__ import annotations

from typing import Any

from ..planners import PlannedAnswer, edges
from ..planners.outcome import decision, judged
from ..planners.slots import SlotsAnswer
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
    rest = f", without {', '.join(missing)}" if missing else ""
    number = len(answer.works) - len(missing)
    return f"wrote {number} parts at the same time, without a planner{rest}"


def planned_facts(answer: PlannedAnswer) -> dict[str, Any]:
    """Return what happened, as plain values; times are seconds since the request began."""
    return {
        "nodes": [
            {
                "id": work.node.id,
                "title": work.node.title,
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
        "dropped_edges": list(answer.plan.dropped),
        "merged": answer.plan.num_merged,
        "contract": answer.plan.contract,
        "missing": answer.missing,
        "retries": answer.num_retries,
        "critical_path": answer.plan.critical_path,
        "plan_tokens": answer.plan_tokens,
        "plan_seconds": answer.plan_seconds,
        "plan_error": str(answer.plan_error) if answer.plan_error else None,
    } | judged(answer)


def slots_facts(answer: SlotsAnswer) -> dict[str, Any]:
    """Return the same for an answer without a planner."""
    return {
        "nodes": [
            {
                "id": at,
                "title": work.slot.name,
                "start": work.start,
                "end": work.end,
                "tokens": work.num_tokens,
                "retries": work.num_retries,
                "continued": False,
                "finish_reason": work.finish_reason,
                "error": str(work.error) if work.error else None,
            }
            for at, work in enumerate(answer.works, 1)
        ],
        "edges": [],
        "missing": answer.missing,
        "retries": sum(work.num_retries for work in answer.works),
        "plan_tokens": 0,
        "plan_seconds": 0.0,
    }
