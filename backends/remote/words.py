"""A constraint said in words, for engines that can only be asked."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from ...middleware.types import Constraint, Message, Request, Text


def said(request: Request, constraint: Constraint) -> Request:
    """Return the request with the constraint written after the last user message.

    At the end, so that everything before stays what an engine may have in its prefix cache.
    """
    words = _words(constraint)
    at = max((i for i, m in enumerate(request.messages) if m.role == "user"), default=None)
    if at is None:
        return replace(request, messages=(*request.messages, Message.user(words)))
    asked = request.messages[at]
    parts = asked.parts
    if parts and isinstance(last := parts[-1], Text):
        parts = (*parts[:-1], replace(last, text=f"{last.text}\n\n{words}"))
    else:
        parts = (*parts, Text(words))
    messages = (*request.messages[:at], replace(asked, parts=parts), *request.messages[at + 1 :])
    return replace(request, messages=messages)


def _words(constraint: Constraint) -> str:
    if constraint.kind == "choice":
        options = "\n".join(f"- {option}" for option in constraint.spec)
        return f"Answer with exactly one of these and nothing else:\n{options}"
    spec = cast("str", constraint.spec)
    if constraint.kind == "json_schema":
        return (
            "Answer with one JSON value and nothing else: no explanation, no code fence. It must "
            f"be valid against this JSON schema:\n{spec}"
        )
    if constraint.kind == "regex":
        return (
            "Answer with one line and nothing else. As a whole it must match this regular "
            f"expression:\n{spec}"
        )
    if constraint.kind == "grammar":
        return f"Answer with a text of this grammar (Lark) and nothing else:\n{spec}"
    return (
        "Answer with this template filled in and nothing else: keep its texts as they are and "
        f"write each field as it is described.\n{spec}"
    )
