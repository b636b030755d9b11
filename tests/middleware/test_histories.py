"""Agents' histories with all that tools return: what was sent stays, and no record goes."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from shorter import assert_shorter

from headrace import Compress, Request

PROSE = [
    "The meeting about the bridge was very long, and everyone in the room said something about the"
    " rising costs of the work, which nobody liked at all in the end.",
    'Ann thinks that it is "too dear"; Bob doesn\'t. It opens on 3 May 2027 at the earliest, costs'
    " 12.5 million euros, and the plan is at https://example.org/plan?id=7 for all to read.",
    "Das Café an der Brücke öffnet 🚀 im Mai, und alle sagten etwas über die Kosten dafür, die"
    " nicht klein sind, und über den 1.234,50 € teuren Umbau der alten Mühle am Fluss.",
]
CODE = ["def f(x):\n    return x", "SELECT a, b FROM t WHERE a > 3 AND b = 'it' ORDER BY a"]
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from([*PROSE, " ".join(PROSE), *CODE, "", "it's", 'a"b\\c\n', None, True, "[1, {"])
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda deeper: (
        st.lists(deeper, max_size=3) | st.dictionaries(st.text(max_size=4), deeper, max_size=3)
    ),
    max_leaves=6,
)
RECORDS = st.lists(
    st.builds(lambda number, value: {"id": number, "value": value}, st.integers(), VALUES),
    min_size=1,
    max_size=4,
)


def inner(text: str) -> str:
    return text[text.index("[") : text.rindex("]") + 1]


Form = tuple[Callable[[list[Any]], str], Callable[[str], list[Any]]]
FORMS: list[Form] = [
    (json.dumps, json.loads),
    (lambda rows: json.dumps(rows, indent=2), json.loads),
    (
        lambda rows: "\n".join(map(json.dumps, rows)),
        lambda text: [json.loads(line) for line in text.split("\n")],
    ),
    (repr, ast.literal_eval),
    (lambda rows: f"{PROSE[0]}\nResult: {json.dumps(rows)}", lambda text: json.loads(inner(text))),
    (lambda rows: f"Seen: {rows!r}. And no more.", lambda text: ast.literal_eval(inner(text))),
    (
        lambda rows: "\n".join(f"row = {row!r}" for row in rows),
        lambda text: [ast.literal_eval(line[6:]) for line in text.split("\n")],
    ),
    (
        lambda rows: f"```json\n{json.dumps(rows, indent=1)}\n```\n\n{PROSE[0]}",
        lambda text: json.loads(inner(text)),
    ),
]


def steps(number: int, text: str) -> list[dict[str, Any]]:
    call: dict[str, Any] = {"id": f"c{number}", "type": "function"}
    call |= {"function": {"name": "look", "arguments": json.dumps({"about": PROSE[0]})}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": text},
    ]


@settings(max_examples=60)
@given(
    st.lists(st.tuples(RECORDS, st.sampled_from(FORMS)), min_size=1, max_size=3),
    st.floats(0.1, 0.9),
)
async def test_calls_keep_results_results_keep_records_and_turns_keep_bytes(
    given: list[tuple[list[Any], Form]], rate: float
) -> None:
    stage = Compress(1, rates={"tool": {0: rate}}, compressor="lexical")
    chat: list[dict[str, Any]] = [{"role": "user", "content": PROSE[0]}]
    before: list[str] = []
    for number, (rows, (write, _)) in enumerate(given):
        chat += steps(number, write(rows))
        after = (await stage.transform(Request.of(chat))).messages
        assert [one.fields.get("tool_calls") for one in after] == [
            one.get("tool_calls") for one in chat
        ]
        assert [one.fields.get("tool_call_id") for one in after] == [
            one.get("tool_call_id") for one in chat
        ]
        assert [one.text for one in after[: len(before)]] == before
        before = [one.text for one in after]
    for (rows, (_, read)), result in zip(given, before[2::2], strict=True):
        assert_shorter(read(result), rows)
