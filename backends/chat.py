"""Messages to the tokens that a model in process reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..middleware.errors import InvalidRequest
from ..middleware.types import Message, Opaque


def prompt_tokens(tokenizer: Any, messages: tuple[Message, ...]) -> list[int]:
    """Return the chat as token ids, by the model's own template.

    A chat that ends with an assistant message is left open, so that the model continues it.
    Raises InvalidRequest for parts that are no text, and when the template refuses the chat.
    """
    if not tokenizer.chat_template:
        raise InvalidRequest("the model has no chat template; choose an instruct or chat model")
    import jinja2

    continues = messages[-1].role == "assistant" and not messages[-1].is_tool
    try:
        text = tokenizer.apply_chat_template(
            [_plain(message) for message in messages],
            tokenize=False,
            add_generation_prompt=not continues,
            continue_final_message=continues,
        )
    except (jinja2.TemplateError, ValueError, TypeError, KeyError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InvalidRequest(f"the model's chat template refuses the chat: {reason[0]}") from error
    ids = tokenizer(text, add_special_tokens=False, verbose=False)["input_ids"]
    return cast("list[int]", ids)


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
