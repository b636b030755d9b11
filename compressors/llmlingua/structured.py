"""Structured prompts and JSON, as the reference's arguments say it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ...middleware.errors import InvalidRequest
from ..budget import Budget
from ..compressor import Compressor
from ..structured.policy import JsonPolicy, Rule
from .tags import Part


def compressed_parts(
    compressor: Compressor, contexts: Sequence[Sequence[Part]], rate: float, **wishes: Any
) -> list[str]:
    """Return each context with every part at its rate, or at the common one without its own.

    A part at rate 1 stays byte for byte; the white space around the others stays too.
    """
    todo = [part for parts in contexts for part in parts if part.rate != 1.0]
    texts = [part.text.strip() for part in todo]
    own = [None if part.rate is None else Budget(rate=part.rate) for part in todo]
    found = compressor.compress(texts, Budget(rate=rate), budgets=own, joint=True, **wishes)
    done = {id(part): result.text for part, result in zip(todo, found, strict=True)}
    return ["".join(_spaced(part, done.get(id(part))) for part in parts) for parts in contexts]


def _spaced(part: Part, compressed: str | None) -> str:
    if compressed is None:
        return part.text
    body = part.text.strip()
    start = part.text.find(body) if body else len(part.text)
    end = start + len(body)
    return part.text[:start] + compressed + (part.text[end:] if compressed else "")


def json_policy(data: Mapping[str, Any], config: str | Mapping[str, Any]) -> JsonPolicy:
    """Return the rules of the reference's ``json_config``: a mapping, or a YAML file's path.

    Only strings are shortened, in lists and objects too; numbers, keys and records stay.

    Raises InvalidRequest for a file that is none, keys that are not the data's, and a rate that
    is none.
    """
    rules: dict[str, Rule] = {}
    settings = _settings(config)
    if set(settings) != set(data):
        apart = sorted(map(str, set(settings) ^ set(data)))
        raise InvalidRequest(f"json_config and the data differ in the keys {apart!r:.200}")
    for key, chosen in settings.items():
        rate = chosen.get("rate", 1)
        if chosen.get("compress", True) and rate != 1 and '"' not in key:
            rules[f'["{key}"]'] = rules[f'["{key}"].**'] = rate
    return JsonPolicy(
        {path: r for path, r in rules.items() if path.count('"') == 2}, only_rules=True
    )


def removable(config: str | Mapping[str, Any]) -> list[str]:
    """Return the keys whose pairs may go."""
    return [key for key, chosen in _settings(config).items() if chosen.get("pair_remove")]


def as_text(data: object) -> str:
    """Return JSON as the compressor reads it.

    Raises InvalidRequest for what JSON has no place for.
    """
    try:
        return json.dumps(data, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InvalidRequest(f"json_data cannot be written as JSON: {error}") from error


def _settings(config: str | Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    loaded: Any = config
    if isinstance(config, (str, Path)):
        import yaml  # type: ignore[import-untyped]

        try:
            loaded = yaml.safe_load(Path(config).read_text("utf-8"))
        except (OSError, yaml.YAMLError) as error:
            reason = str(error).splitlines()[0]
            raise InvalidRequest(f"json_config {config!r:.80} cannot be read: {reason}") from error
    if not isinstance(loaded, Mapping):
        raise InvalidRequest(f"json_config must map keys to settings, got {loaded!r:.80}")
    settings = cast("Mapping[str, Any]", loaded)
    for key, chosen in settings.items():
        if not isinstance(chosen, Mapping):
            raise InvalidRequest(f"json_config[{key!r:.40}] must be a mapping, got {chosen!r:.80}")
    return settings
