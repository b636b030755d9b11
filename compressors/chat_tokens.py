"""What a chat costs in tokens: its texts and the template around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from ..middleware.errors import InvalidRequest
from .tokens import TokenCounter, TokenizerCounter

_A_MESSAGE = 3
_A_NAME = 1
_THE_ANSWER = 3


def count_messages(
    messages: Sequence[Mapping[str, Any]], counter: TokenCounter, *, is_prompt: bool = True
) -> int:
    """Return the tokens of a chat as the engine sees it, template and all.

    ``messages`` are OpenAI's: ``{"role": .., "content": ..}``, the content a text or a list of
    parts, of which the texts count. With a ``TokenizerCounter`` the folder's own chat template is
    applied and counted, with the head of the answer if ``is_prompt``. Any other counter goes by
    OpenAI's rule: 3 tokens a message, 1 for a name, 3 for the head of the answer, and all values.

    Raises InvalidRequest for a tokenizer without a chat template, messages that the template
    refuses, and a message without a role.
    """
    for place, message in enumerate(messages):
        if not isinstance(message.get("role"), str):
            raise InvalidRequest(f"message {place} needs a role, got {dict(message)!r:.80}")
    if isinstance(counter, TokenizerCounter):
        return counter.count(_rendered(messages, counter, is_prompt))
    total = _THE_ANSWER if is_prompt and messages else 0
    for message in messages:
        values = [_text(value) for value in message.values() if value is not None]
        total += _A_MESSAGE + sum(counter.count_many(values)) + _A_NAME * ("name" in message)
    return total


def overhead(messages: Sequence[Mapping[str, Any]], counter: TokenCounter) -> int:
    """Return what the template adds to the contents' own tokens."""
    contents = [_text(message.get("content") or "") for message in messages]
    return count_messages(messages, counter) - sum(counter.count_many(contents))


def _rendered(
    messages: Sequence[Mapping[str, Any]], counter: TokenizerCounter, is_prompt: bool
) -> str:
    tokenizer = _with_template(counter.path)
    if not getattr(tokenizer, "chat_template", None):
        raise InvalidRequest(
            f"the tokenizer {counter.name!r} has no chat template; count the texts, or give a chat"
            " model's tokenizer"
        )
    plain = [{**message, "content": _text(message.get("content") or "")} for message in messages]
    from jinja2 import TemplateError

    try:
        rendered: str = tokenizer.apply_chat_template(
            plain, tokenize=False, add_generation_prompt=is_prompt
        )
    except TemplateError as error:
        raise InvalidRequest(
            f"the chat template of {counter.name!r} refuses these messages: {error}"
        ) from error
    return rendered


@lru_cache(maxsize=4)
def _with_template(path: Path) -> Any:
    from transformers import AutoTokenizer

    return cast("Any", AutoTokenizer).from_pretrained(str(path))


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        parts: list[Any] = [p for p in cast("Any", value) if isinstance(p, Mapping)]
        return "".join(str(part.get("text") or "") for part in parts)
    return str(value)
