"""Imitations of engines on the wire: which constraint fields each reads, ignores and refuses.

What is imitated are the HTTP manners, not text: a constrained engine says the first of a test's
``candidates`` that the constraint lets through, an unconstrained one says ``PROSE``. The error
texts are the engines' own.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from jsonschema.validators import validator_for
from starlette.responses import JSONResponse, Response

from .wire import DONE, Answering, Server, chunk, sends

PROSE = "Hello! How can I help you today?"
SENTINELS = (
    "ok-7f3a",
    "ok-7f3a1",
    '{"ok": "7f3a"}',
    '{"answer": "ok-7f3a"}',
    '{"answer": "ok-7f3a1"}',
)
Accepts = Callable[[str], bool]


class Refused(Exception):
    """An error status; ``in_stream``: it comes as an event of a stream that began with 200."""

    def __init__(self, status: int, body: dict[str, Any], *, in_stream: bool = False) -> None:
        self.status = status
        self.body = body
        self.in_stream = in_stream


@dataclass(frozen=True)
class Imitation:
    """``read`` returns what a body lets through, None for everything; it raises Refused."""

    read: Callable[[dict[str, Any]], Accepts | None]
    owner: str = ""
    pages: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])

    def on(self, server: Server, *candidates: str, prose: str = PROSE) -> None:
        """Make the server behave like this engine."""
        server.models = [{"id": "tiny", "object": "model", "owned_by": self.owner}]
        server.pages = self.pages
        server.script = self.script(candidates, prose)

    def script(self, candidates: Sequence[str], prose: str) -> Answering:
        async def script(body: dict[str, Any]) -> Response:
            try:
                accepts = self.read(body)
            except Refused as refused:
                if refused.in_stream:
                    return await sends(f"data: {json.dumps(refused.body)}\n\n".encode(), DONE)(body)
                return JSONResponse(refused.body, refused.status)
            text = prose
            if accepts is not None:
                text = next(t for t in (*candidates, *SENTINELS) if accepts(t))
            return await says(text)(body)

        return script


def says(text: str, reason: str = "stop", pieces: int = 3) -> Answering:
    """Stream a text, ``pieces`` characters a chunk."""
    parts = [text[i : i + pieces] for i in range(0, len(text), pieces)]
    return sends(*(chunk({"content": part}) for part in parts), chunk({}, reason), DONE)


def error(message: str, status: int = 400) -> Refused:
    return Refused(
        status, {"error": {"message": message, "type": "BadRequestError", "code": status}}
    )


def has_key(value: Any, key: str) -> bool:
    if isinstance(value, dict):
        return key in value or any(has_key(one, key) for one in value.values())
    return isinstance(value, list) and any(has_key(one, key) for one in value)


def by_schema(schema: Any) -> Accepts:
    def accepts(text: str) -> bool:
        try:
            return bool(validator_for(schema)(schema).is_valid(json.loads(text)))
        except ValueError:
            return False

    return accepts


def by_pattern(pattern: str) -> Accepts:
    return lambda text: re.fullmatch(pattern, text) is not None


def by_gbnf(grammar: str) -> Accepts:
    """Read the one-rule grammars of GBNF. Raises ValueError for anything else."""
    if not grammar.startswith("root ::= "):
        raise ValueError("no root")
    tokens = re.findall(r'"(?:[^"\\]|\\.)*"|\[(?:[^\]\\]|\\.)*\]|\{[\d,]+\}|[()|*+?]', grammar[8:])
    return by_pattern("".join(_as_pattern(token) for token in tokens))


def _as_pattern(token: str) -> str:
    if token.startswith('"'):
        return f"(?:{re.escape(ast.literal_eval(token))})"
    return "(?:" if token == "(" else token


def nested_schema(body: dict[str, Any]) -> Any:
    """Return the schema in response_format.json_schema.schema, None where there is none."""
    form = body.get("response_format") or {}
    return form["json_schema"]["schema"] if form.get("type") == "json_schema" else None


def _json_mode(body: dict[str, Any]) -> Accepts | None:
    is_on = (body.get("response_format") or {}).get("type") == "json_object"
    return by_schema({"type": "object"}) if is_on else None


def _response_format(body: dict[str, Any]) -> Accepts | None:
    schema = nested_schema(body)
    return _json_mode(body) if schema is None else by_schema(schema)


def _vllm(body: dict[str, Any]) -> Accepts | None:
    given: dict[str, Any] = body.get("structured_outputs") or {}
    if len(given) > 1:
        raise error("You can only use one kind of structured outputs constraint")
    if "json" in given:
        if has_key(given["json"], "propertyNames"):
            raise error('Grammar error: Unimplemented keys: ["propertyNames"]')
        return by_schema(given["json"])
    if "regex" in given:
        return by_pattern(given["regex"])
    if "choice" in given:
        return lambda text: text in given["choice"]
    if "grammar" in given:
        return by_pattern(given["grammar"].removeprefix('start: "').removesuffix('"'))
    return _response_format(body)


def _vllm_guided(body: dict[str, Any]) -> Accepts | None:
    if "guided_json" in body:
        return by_schema(body["guided_json"])
    if "guided_regex" in body:
        return by_pattern(body["guided_regex"])
    if "guided_choice" in body:
        return lambda text: text in body["guided_choice"]
    return _response_format(body)


def _sglang(body: dict[str, Any]) -> Accepts | None:
    if "regex" in body:
        return by_pattern(body["regex"])
    if has_key(nested_schema(body), "uniqueItems"):
        said = "Failed to compile json grammar: uniqueItems is not supported"
        raise Refused(
            200, {"error": {"object": "error", "message": said, "code": 400}}, in_stream=True
        )
    return _response_format(body)


def _tgi(body: dict[str, Any]) -> Accepts | None:
    form = body.get("response_format")
    if form is None:
        return None
    if "value" not in form:
        said = "Failed to deserialize the JSON body into the target type: response_format: "
        raise Refused(422, {"error": said + "missing field `value`", "error_type": "validation"})
    if body.get("tools"):
        said = "Grammar and tools are mutually exclusive"
        raise Refused(422, {"error": said, "error_type": "grammar and tools"})
    return by_pattern(form["value"]) if form["type"] == "regex" else by_schema(form["value"])


def _llama(body: dict[str, Any], *, fails_open: bool = False) -> Accepts | None:
    schema = nested_schema(body)
    if "grammar" in body:
        if body.get("tools"):
            raise error("Cannot use custom grammar constraints with tools.")
        try:
            return by_gbnf(body["grammar"])
        except ValueError:
            if fails_open:
                return None
            raise error("failed to parse grammar") from None
    for pattern in re.findall(r'"pattern": "([^"]*)"', json.dumps(schema)):
        if not (pattern.startswith("^") and pattern.endswith("$")):
            said = "JSON schema conversion failed:\nPattern must start with '^' and end with '$'"
            raise error(said)
        if fails_open and "!" in pattern:
            return None  # converted, and then the grammar does not parse: ggml-org/llama.cpp#19051
    return _response_format(body)


def _ollama(body: dict[str, Any]) -> Accepts | None:
    if has_key(nested_schema(body), "patternProperties"):
        raise Refused(500, {"error": {"message": "invalid JSON schema in format"}})
    return _response_format(body)


def _openai(body: dict[str, Any]) -> Accepts | None:
    for name in body:
        if name in ("structured_outputs", "guided_json", "guided_choice", "regex", "grammar"):
            raise error(f"Unrecognized request argument supplied: {name}")
    schema = nested_schema(body)
    if schema is None:
        said = "'messages' must contain the word 'json' in some form"
        if _json_mode(body) and "json" not in json.dumps(body["messages"]).lower():
            raise error(said)
        return _json_mode(body)
    _check_strict(schema, ())
    return by_schema(schema)


def _check_strict(schema: Any, where: tuple[str, ...]) -> None:
    wrong = f"Invalid schema for response_format 'answer': In context={where}, "
    if isinstance(schema, list):
        for one in schema:
            _check_strict(one, where)
    if not isinstance(schema, dict):
        return
    if not where and schema.get("type") != "object":
        raise error(wrong + "schema must be a JSON Schema of 'type: \"object\"'")
    for key in ("allOf", "oneOf", "not", "if", "patternProperties", "minLength", "default"):
        if key in schema:
            raise error(wrong + f"'{key}' is not permitted.")
    if "object" in (schema.get("type"), *(schema.get("type") or ())):
        is_wanted = "is required to be supplied and to be"
        if schema.get("additionalProperties") is not False:
            raise error(f"{wrong}'additionalProperties' {is_wanted} false.")
        if set(schema.get("required", ())) != set(schema.get("properties", {})):
            said = f"'required' {is_wanted} an array including every key in properties."
            raise error(wrong + said)
    for key in ("properties", "$defs"):
        for name, one in schema.get(key, {}).items():
            _check_strict(one, (*where, key, name))
    for key in ("items", "anyOf"):
        _check_strict(schema.get(key), (*where, key))


ENGINES: dict[str, Imitation] = {
    "vllm": Imitation(_vllm, "vllm", {"/version": {"version": "0.33.0"}}),
    "vllm-guided": Imitation(_vllm_guided, "vllm", {"/version": {"version": "0.11.2"}}),
    "sglang": Imitation(
        _sglang,
        "sglang",
        {
            "/server_info": {
                "version": "0.5.23",
                "grammar_backend": "xgrammar",
                "tokenizer_path": "x",
            }
        },
    ),
    "tgi": Imitation(
        _tgi,
        "HuggingFaceTB/SmolLM2-135M-Instruct",
        {
            "/info": {
                "version": "3.3.7",
                "docker_label": "sha-1",
                "max_total_tokens": 4096,
            }
        },
    ),
    "llama.cpp": Imitation(
        _llama,
        "llamacpp",
        {"/props": {"default_generation_settings": {"n_ctx": 2048}, "build_info": "b11434"}},
    ),
    "ollama": Imitation(_ollama, "library", {"/api/version": {"version": "0.13.1"}}),
    "openai": Imitation(_openai, "system"),
}
# Answers 200 and free text to every field, as `transformers serve` does.
DEAF = Imitation(lambda _: None, "HuggingFaceTB")
FAILS_OPEN = Imitation(
    lambda body: _llama(body, fails_open=True), "llamacpp", ENGINES["llama.cpp"].pages
)
