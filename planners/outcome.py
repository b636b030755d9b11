"""What was predicted for an answer and what came of it, as plain values for the report."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from .calibration import num_tokens
from .predictor import plain_seconds
from .repeats import FLAGGED
from .run import PlannedAnswer


def judged(answer: PlannedAnswer) -> dict[str, Any]:
    """Return the decision, times in seconds, and what was done about failures.

    ``sequential_seconds`` is what one plain call for as many tokens is estimated to take with the
    engine as it is known now, and ``speedup`` compares the answer with that estimate, None
    where the plan was given up.
    """
    judgement, sections = answer.judgement, answer.sections
    engine, found = sections.engine, answer.judgement.forecast
    tokens = sum(work.num_tokens for work in answer.works)
    prompt = num_tokens("".join(message.text for message in answer.request.messages))
    sequential = plain_seconds(engine.cost, prompt, tokens) if tokens else 0.0
    is_known = tokens > 0 and answer.seconds > 0 and not answer.unusable
    flagged = [
        {"part": work.node.id, "like": work.alike[0], "share": round(work.alike[1], 3)}
        for work in answer.works
        if work.alike[1] > FLAGGED
    ]
    return {
        "decision": judgement.verdict,
        "decision_why": judgement.why,
        "trial": judgement.gate.trial or None,
        "predicted_gain": found.gain if found else None,
        "predicted_seconds": judgement.predicted_seconds,
        "actual_seconds": answer.seconds,
        "sequential_seconds": sequential,
        "speedup": sequential / answer.seconds if is_known else None,
        "extra_prompt_tokens": found.extra_prompt_tokens if found else None,
        "cached_tokens": answer.usage.cached_tokens,
        "step_cost": asdict(engine.cost),
        "observed_steps": engine.speed.num_steps,
        "length_factor": engine.lengths.factor(sections.kind),
        "small": [work.node.id for work in answer.works if work.is_small],
        "rescued": [work.node.id for work in answer.works if work.is_rescued],
        "flaws": {work.node.id: work.flaw for work in answer.works if work.flaw},
        "alike": flagged,
        "seams": sections.num_seams,
    }


def decision(answer: PlannedAnswer) -> str:
    """Return the report's few words."""
    missing = answer.missing
    rest = f", without part {', '.join(map(str, missing))}" if missing else ""
    judgement = answer.judgement
    if answer.is_plain:
        return f"one plain call: {judgement.why}"
    number = len(answer.plan.nodes) - len(missing)
    if judgement.verdict == "one call":
        return f"wrote {number} parts one after the other: {judgement.why}{rest}"
    how = "at the same time" if judgement.verdict == "parallel" else "as their lines came"
    trial = ", as a trial" if judgement.gate.trial else ""
    return f"wrote {number} part{'s' * (number != 1)} {how}{trial}{rest}"
