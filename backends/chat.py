"""Messages to the tokens that a model in process reads."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

from ..middleware.errors import InvalidRequest
from ..middleware.types import Message, Opaque

_PLACE = "\ue000{}\ue001"
_PLACES = re.compile("\ue000(\\d+)\ue001")


def prompt_tokens(tokenizer: Any, messages: tuple[Message, ...]) -> list[int]:
    """Return the chat as token ids, by the model's own template.

    A chat that ends with an assistant message is left open, so that the model continues it.
    Raises InvalidRequest for parts that are no text, and when the template refuses the chat.
    """
    if not tokenizer.chat_template:
        raise InvalidRequest("the model has no chat template; choose an instruct or chat model")
    import jinja2

    shown, texts = _hidden(tokenizer, [_plain(message) for message in messages])
    continues = messages[-1].role == "assistant" and not messages[-1].is_tool
    try:
        text = tokenizer.apply_chat_template(
            shown,
            tokenize=False,
            add_generation_prompt=not continues,
            continue_final_message=continues,
        )
    except (jinja2.TemplateError, ValueError, TypeError, KeyError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InvalidRequest(f"the model's chat template refuses the chat: {reason[0]}") from error
    return _tokens(tokenizer, text, texts)


def _hidden(
    tokenizer: Any, messages: list[dict[str, Any]]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Replace texts that hold a special token by placeholders; returns the texts, too.

    To the model such a text is a text: a document that says <|im_end|> ends no turn.
    """
    special = [token for token in tokenizer.all_special_tokens if token]
    special += [str(token) for token in tokenizer.get_added_vocab()]
    texts: list[str] = []
    shown: list[dict[str, Any]] = []
    for message in messages:
        content = message["content"]
        if any(token in content for token in special):
            texts.append(content)
            message = {**message, "content": _PLACE.format(len(texts) - 1)}
        shown.append(message)
    return shown, texts


def _tokens(tokenizer: Any, text: str, texts: list[str]) -> list[int]:
    """Return the token ids of a filled template, with the texts in their places."""
    ids: list[int] = []
    for i, piece in enumerate(_PLACES.split(text)):
        is_text = i % 2 == 1
        if is_text and int(piece) >= len(texts):
            is_text, piece = False, _PLACE.format(piece)
        ids += tokenizer(
            texts[int(piece)] if is_text else piece,
            add_special_tokens=False,
            split_special_tokens=is_text,
            verbose=False,
        )["input_ids"]
    return ids


def _plain(message: Message) -> dict[str, Any]:
    """Return the message with its content as one text, which is what templates can read."""
    for part in message.parts:
        if isinstance(part, Opaque):
            data: Any = part.data
            kind = type(data).__name__
            if isinstance(data, Mapping):
                kind = cast("Mapping[str, Any]", data).get("type", kind)
            raise InvalidRequest(f"the model reads text only, but a message has a {kind!r} part")
    return {"role": message.role, "content": message.text, **message.fields}
