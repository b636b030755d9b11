"""Sentences that lead from one part to the next, asked for in one short call.

Only between parts: no text is rewritten (a merging pass takes 1.67 times as long and reads worse).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from ..middleware.errors import DeadlineExceeded, HeadraceError, UnsupportedConstraint
from ..middleware.types import Constraint, Message, TextDelta
from .calls import Calls

MAX_WORDS = 20
_ENDS = 160  # characters of each text's end and beginning
_TOKENS = 40  # a sentence


async def connect(
    calls: Calls,
    messages: tuple[Message, ...],
    texts: Mapping[int, tuple[str, str]],
    ids: Sequence[int],
) -> dict[int, str]:
    """Return a sentence to stand before each of these parts, by id.

    Those that do not fit are left out, and so are all of them when the call fails.
    ``texts`` holds title and text of every part. The call is held to a JSON schema where the
    engine can do that. Raises DeadlineExceeded.
    """
    asked = (*messages[:-1], Message.user(_task(messages[-1].text, texts, ids)))
    schema = {
        "type": "object",
        "properties": {str(id): {"type": "string", "maxLength": 200} for id in ids},
        "required": [str(id) for id in ids],
        "additionalProperties": False,
    }
    constraint = Constraint("json_schema", json.dumps(schema, sort_keys=True))
    for held in (constraint, None):
        text = ""
        try:
            events = calls.stream(asked, _TOKENS * len(ids) + 16, constraint=held)
            async with aclosing(events) as stream:
                async for event in stream:
                    text += event.text if isinstance(event, TextDelta) else ""
        except DeadlineExceeded:
            raise
        except UnsupportedConstraint:
            continue
        except HeadraceError:
            return {}
        return read_seams(text, ids)
    return {}


def read_seams(text: str, ids: Sequence[int]) -> dict[int, str]:
    """Return the sentences in a reply: one line, at most 20 words each.

    >>> read_seams('{"2": "So much for the cost.", "3": "' + "x " * 30 + '"}', [2, 3])
    {2: 'So much for the cost.'}
    """
    start, end = text.find("{"), text.rfind("}")
    try:
        data: Any = json.loads(text[start : end + 1]) if 0 <= start < end else None
    except ValueError:
        data = None
    if not isinstance(data, dict):
        return {}
    found: dict[int, str] = {}
    for id in ids:
        said: Any = cast("dict[str, Any]", data).get(str(id))
        if isinstance(said, str) and 0 < len(said.split()) <= MAX_WORDS and "\n" not in said:
            found[id] = said.strip()
    return found


def _task(question: str, texts: Mapping[int, tuple[str, str]], ids: Sequence[int]) -> str:
    seams = "".join(
        f'{id}: from "{texts[id - 1][0]}" (... {texts[id - 1][1][-_ENDS:]})'
        f' to "{texts[id][0]}" ({texts[id][1][:_ENDS]} ...)\n'
        for id in ids
    )
    return (
        f"{question[:500]}\n\nThe answer has parts. For each of these places between two parts, "
        f"write one sentence of at most {MAX_WORDS} words that leads from the one to the other. "
        f"Reply with a JSON object: the number, then the sentence.\n{seams}"
    )
