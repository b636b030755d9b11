"""Which messages of a chat may be cut, and at which rate, by role and age."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from ..compressors import Budget
from .errors import InvalidRequest
from .given_back import given_back
from .shown import nearest
from .types import Message, Request, Text

Slot = tuple[int, int]
"""Where a text came from: (-1, document) or (message, part)."""

Rates = Mapping[str, float | Mapping[int, float]]
"""A rate a role, or rates by age: as ``ages`` counts it."""


def check_leaves_some(budget: Budget) -> None:
    """Say that a budget leaves nothing of any text, so that no message could be sent.

    Raises InvalidRequest. A threshold is not looked at: which scores there are is not known.
    """
    for name in ("rate", "target_tokens", "quality"):
        if getattr(budget, name) == 0:
            raise InvalidRequest(
                f"{name}=0 leaves nothing of a message, and an empty one cannot be sent;"
                f" give more than 0, or leave {name} out"
            )


ROLES = ("system", "developer", "user", "assistant", "tool", "function")
"""The roles of OpenAI's and Anthropic's chats; a tool's result is "tool" in all of them."""


def checked(rates: Rates, *, may_be_zero: bool = False) -> dict[str, dict[int, Budget]]:
    """Return budgets by role and least age; a single rate is for messages of age 1 and more.

    Raises InvalidRequest for a role that no chat has, a rate outside [0, 1], one of 0 unless it
    ``may_be_zero``, and an age that is no whole number from 0 on.

    >>> sorted(checked({"tool": {1: 0.5, 4: 0.2}})["tool"])
    [1, 4]
    """
    if not isinstance(rates, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f'rates must be a mapping such as {{"tool": 0.3}}, got {rates!r:.80}')
    found: dict[str, dict[int, Budget]] = {}
    for role, given in rates.items():
        if role not in ROLES:
            raise InvalidRequest(f"rates has no role {role!r:.40}; {nearest(role, ROLES)}")
        by_age = given if isinstance(given, Mapping) else {1: given}
        for age, rate in by_age.items():
            if type(age) is not int or age < 0:
                raise InvalidRequest(f"the age of {role} messages must be 0 or more, got {age!r}")
            try:
                budget = found.setdefault(role, {})[age] = Budget(rate=rate)
                if not may_be_zero:
                    check_leaves_some(budget)
            except InvalidRequest as error:
                raise InvalidRequest(f"the rate of {role} messages: {error}") from error
    return found


def ages(messages: Sequence[Message], every: int | None = None) -> list[int]:
    """Return how old each message is: how many user turns have come after it.

    With ``every``, calls of the model are counted instead, in blocks of so many: a chat in which an
    agent works for a long time on one user turn gets older too, yet all ages change together and
    only at every so many calls, so that in between each request begins with the bytes of the one
    before. What the model has not seen yet is of age 0. A user turn's age is that of the next one,
    with which it stops being the last.

    >>> chat = [Message.user("Go")] + [Message.assistant("and"), Message("tool", ())] * 4
    >>> ages(chat), ages(chat, 2)
    ([0, 0, 0, 0, 0, 0, 0, 0, 0], [0, 2, 2, 2, 1, 1, 1, 1, 0])
    """
    if every is None:
        turns = list(accumulate(message.role == "user" for message in messages))
        return [turns[-1] - turn for turn in turns]
    calls = list(accumulate(message.role == "assistant" for message in messages))
    found: list[int] = []
    since = calls[-1] if calls else 0
    for message, done in zip(reversed(messages), reversed(calls), strict=True):
        before = done - (message.role == "assistant")
        found.append(calls[-1] // every - (since if message.role == "user" else before) // every)
        since = before if message.role == "user" else since
    return found[::-1]


def cuttable(
    request: Request,
    rates: Mapping[str, Mapping[int, Budget]],
    default: Budget,
    every: int | None = None,
) -> Iterator[tuple[Slot, str, Budget, bool]]:
    """Yield each text that may be cut: where it is, its budget, and whether that is its role's own.

    Without a rate of their own, user and assistant messages have the ``default`` from age 1 on
    (``ages``), and all others stay. The last user turn, messages that ask for tools and what the
    tool ``retrieve`` gave back always stay.
    """
    last = last_user(request)
    whole = given_back(request.messages)
    for i, (message, age) in enumerate(
        zip(request.messages, ages(request.messages, every), strict=True)
    ):
        if i == last or i in whole:
            continue
        if message.fields.get("tool_calls") or message.fields.get("function_call"):
            continue
        own = rates.get(message.role)
        if own is None and (age < 1 or not _is_said(message)):
            continue
        fitting = [least for least in own or () if least <= age]
        if own is not None and not fitting:
            continue
        budget = own[max(fitting)] if own is not None else default
        for j, part in enumerate(message.parts):
            if isinstance(part, Text):
                yield (i, j), part.text, budget, own is not None


def last_user(request: Request) -> int:
    """Return the index of the last user turn, -1 without one."""
    return max((i for i, m in enumerate(request.messages) if m.role == "user"), default=-1)


def put_back(request: Request, texts: Mapping[Slot, str]) -> tuple[Request, int, int]:
    """Return the request with the new texts, and how many documents and other texts are emptied.

    Those documents are left out. A message is never emptied, since many engines refuse an empty
    one: a text of it that nothing is left of stays whole.
    """

    def message(i: int, old: Message) -> Message:
        parts = tuple(
            replace(part, text=texts[i, j])
            if isinstance(part, Text) and (i, j) in texts and texts[i, j].strip()
            else part
            for j, part in enumerate(old.parts)
        )
        return old if parts == old.parts else replace(old, parts=parts)

    documents = [
        replace(old, text=texts[-1, i])
        for i, old in enumerate(request.documents)
        if texts[-1, i].strip()
    ]
    changed = replace(
        request,
        messages=tuple(message(i, old) for i, old in enumerate(request.messages)),
        documents=tuple(documents),
    )
    whole = [slot for slot, text in texts.items() if slot[0] >= 0 and not text.strip()]
    return changed, len(request.documents) - len(documents), len(whole)


def _is_said(message: Message) -> bool:
    return message.role in ("user", "assistant") and not message.is_tool
