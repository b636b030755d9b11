"""Tool schemas: shorter descriptions, the same tools."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest

from headrace.compressors import Budget, make_counter
from headrace.compressors.structured.schemas import compress_tools
from headrace.middleware.errors import InvalidRequest

COUNT = make_counter().count
LONG = (
    "Use this tool whenever the user wants to know what the weather is like in a city. It must not"
    " be called more than 3 times an hour, see https://example.org/limits for the reasons."
)
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "weather",
            "description": LONG,
            "strict": True,
            "parameters": {
                "$defs": {"unit": {"description": LONG, "enum": ["celsius", "kelvin"]}},
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": LONG, "default": LONG},
                    "unit": {"$ref": "#/$defs/unit"},
                    "description": {"type": "string", "minLength": 1},
                    "any": {
                        "anyOf": [{"type": "null", "description": "Nothing."}, {"type": "array"}],
                        "examples": [{"description": LONG}],
                    },
                },
                "required": ["city", "description"],
                "additionalProperties": False,
            },
        },
    },
    {"name": "search", "description": LONG, "input_schema": {"type": "object"}},
]


def blank(value: Any, *, is_named: bool = False) -> Any:
    """Return a schema with its descriptions blanked; written apart from what is tested."""
    if isinstance(value, list):
        return [blank(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {
        key: "..."
        if key == "description" and isinstance(one, str) and not is_named
        else one
        if key in ("default", "examples", "enum", "required")
        else blank(one, is_named=key in ("properties", "$defs"))
        for key, one in value.items()
    }


def descriptions(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for one in value for text in descriptions(one)]
    if not isinstance(value, dict):
        return []
    own = [value["description"]] if isinstance(value.get("description"), str) else []
    rest = [one for key, one in value.items() if key not in ("default", "examples")]
    return own + [text for one in rest for text in descriptions(one)]


@pytest.mark.parametrize("rate", [0.8, 0.5, 0.2])
def test_only_descriptions_change_and_hold_the_budget(rate: float) -> None:
    before = copy.deepcopy(TOOLS)
    short = compress_tools(TOOLS, Budget(rate=rate))
    assert before == TOOLS
    assert blank(short) == blank(TOOLS)
    assert [list(tool) for tool in short] == [list(tool) for tool in TOOLS]
    old, new = descriptions(TOOLS), descriptions(short)
    assert sum(map(COUNT, new)) <= rate * sum(map(COUNT, old))
    assert sum(map(COUNT, new)) >= 0.9 * rate * sum(map(COUNT, old))
    assert all(text.strip() for text in new)
    assert all("https://example.org/limits" in text or "https" not in text for text in new)


def test_a_schema_means_what_it_meant() -> None:
    schema = TOOLS[0]["function"]["parameters"]
    (short,) = compress_tools([schema], Budget(rate=0.3))
    jsonschema.Draft202012Validator.check_schema(short)
    for value in ({"city": "Rome", "description": "x"}, {"city": "Rome"}, {"unit": "kelvin"}):
        checks = [jsonschema.Draft202012Validator(s).is_valid(value) for s in (schema, short)]
        assert checks[0] == checks[1]


def test_a_rate_of_one_changes_nothing_and_one_of_zero_leaves_a_word() -> None:
    assert compress_tools(TOOLS, Budget(rate=1)) == TOOLS
    assert all(descriptions(compress_tools(TOOLS, Budget(rate=0))))


def test_the_same_tools_become_the_same_bytes() -> None:
    first = compress_tools(TOOLS, Budget(rate=0.4))
    assert compress_tools(TOOLS, Budget(rate=0.4)) == first


def test_no_tools_are_no_tools() -> None:
    assert compress_tools([], Budget(rate=0.5)) == []
    assert compress_tools([{"name": "f"}], Budget(rate=0.5)) == [{"name": "f"}]


@pytest.mark.parametrize("tools", ["f", {"name": "f"}, ["f"], [None]])
def test_what_are_no_tools_is_said(tools: Any) -> None:
    with pytest.raises(InvalidRequest, match="list of mappings"):
        compress_tools(tools, Budget(rate=0.5))


def test_a_schema_that_holds_itself_is_said() -> None:
    loop: dict[str, Any] = {"type": "object"}
    loop["items"] = loop
    with pytest.raises(InvalidRequest, match="deeper"):
        compress_tools([loop], Budget(rate=0.5))
