"""The values that travel through a pipeline. All of them are frozen."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, cast, get_args

from .errors import InvalidRequest
from .messages import Message as Message
from .messages import Opaque as Opaque
from .messages import Part as Part
from .messages import Text as Text
from .report import Report


@dataclass(frozen=True, slots=True)
class Document:
    """A piece of context. ``score`` is set by ``Rerank``; ids and metadata are never changed."""

    text: str
    title: str = ""
    id: str | None = None
    score: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])


ConstraintKind = Literal["json_schema", "regex", "choice", "grammar", "template"]


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the output must look like.

    ``spec`` is the schema as canonical JSON text, the pattern, the choices, the grammar (Lark, as
    llguidance reads it), or the template's parts as JSON text: hashable, so that a compiled
    automaton can be cached by it. ``parse`` turns the finished text into a value and
    does not take part in comparisons; None is the kind's own reading (JSON values, a template's
    fields, the text). Make one with ``headrace.constraint(...)``.
    """

    kind: ConstraintKind
    spec: str | tuple[str, ...]
    parse: Callable[[str], Any] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        text = self.spec if isinstance(self.spec, str) else "".join(map(str, self.spec))
        if any("\ud800" <= char <= "\udfff" for char in text):
            raise InvalidRequest(
                f"a {self.kind} constraint with half a character (a lone surrogate) cannot be kept:"
                f" {text!r:.60}"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return kind and spec as JSON values.

        ``parse`` is code and is left out: what ``from_dict`` reads parses to plain values.

        >>> Constraint.from_dict(Constraint("choice", ("yes", "no")).to_dict())
        Constraint(kind='choice', spec=('yes', 'no'))
        """
        spec = self.spec if isinstance(self.spec, str) else list(self.spec)
        return {"kind": self.kind, "spec": spec}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Constraint:
        """Read what ``to_dict`` wrote. Raises InvalidRequest for anything else."""
        if not isinstance(data, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidRequest(f"a constraint is an object with kind and spec, got {data!r:.60}")
        kind: Any = data.get("kind")
        spec: Any = data.get("spec")
        if kind not in get_args(ConstraintKind):
            kinds = ", ".join(get_args(ConstraintKind))
            raise InvalidRequest(f"a constraint's kind is one of {kinds}, got {kind!r:.40}")
        if kind == "choice" and isinstance(spec, (list, tuple)):
            options = tuple(cast("Sequence[Any]", spec))
            if options and all(isinstance(option, str) for option in options):
                return cls("choice", options)
        if kind == "choice" or not isinstance(spec, str):
            wanted = "a list of texts" if kind == "choice" else "a text"
            raise InvalidRequest(f"a {kind} constraint's spec is {wanted}, got {spec!r:.60}")
        return cls(kind, spec)


@dataclass(frozen=True, slots=True)
class Enforcement:
    """How far an engine held an answer to its constraint while it was written.

    ``level`` is "full" when nothing outside the constraint could be written, "partial" when only
    the ``residual`` (keywords with their place, such as "/properties/age/not") was left to the
    check of the finished text, "none" when the engine was only asked in words. ``by`` names the
    automaton, or the field of the server's API. ``was_closed``: the answer was brought to a valid
    end early, because ``max_tokens`` left no room for more; from character ``closed_at`` on it is
    not what the model would have written, and the value at that place may be half of one.
    """

    level: Literal["full", "partial", "none"] = "none"
    residual: tuple[str, ...] = ()
    by: str = ""
    was_closed: bool = False
    closed_at: int | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to decode. None means: as the engine does by default.

    ``extra`` is passed to the engine as it is.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    extra: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def __post_init__(self) -> None:
        if self.max_tokens is not None and type(self.max_tokens) is not int:
            raise InvalidRequest(f"max_tokens is a whole number, got {self.max_tokens!r:.40}")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise InvalidRequest(f"max_tokens must be at least 1, got {self.max_tokens}")
        if self.temperature is not None and not 0 <= self.temperature <= 100:
            raise InvalidRequest(f"temperature must be 0 or more, got {self.temperature}")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise InvalidRequest(f"top_p must be in (0, 1], got {self.top_p}")


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller asks.

    ``question`` defaults to the text of the last user message and stays what it was when the
    messages are replaced. ``deadline`` is in seconds from the moment the request is dispatched.
    ``report`` holds the rows of the stages that have seen the request so far.
    """

    messages: tuple[Message, ...]
    documents: tuple[Document, ...] = ()
    question: str = ""
    constraint: Constraint | None = None
    sampling: Sampling = field(default_factory=Sampling)
    deadline: float | None = None
    tags: Mapping[str, str] = field(default_factory=dict[str, str])
    report: Report = field(default_factory=Report)

    def __post_init__(self) -> None:
        if not self.messages:
            raise InvalidRequest("a request needs at least one message, got none")
        if not self.question:
            asked = (m.text for m in reversed(self.messages) if m.role == "user")
            object.__setattr__(self, "question", next((text for text in asked if text), ""))

    @classmethod
    def of(cls, prompt: str | Sequence[Mapping[str, Any] | Message], **fields: Any) -> Request:
        """Return a request from a text (one user message) or a chat.

        A chat is a sequence of Message or of mappings in OpenAI's shape.

        >>> Request.of("Who?").question
        'Who?'
        >>> Request.of([{"role": "system", "content": "Hi"}, {"role": "user", "content": "Who?"}])
        ... # doctest: +ELLIPSIS
        Request(messages=(Message(role='system', ...
        """
        if isinstance(prompt, str):
            return cls((Message.user(prompt),), **fields)
        if isinstance(prompt, Mapping) or not isinstance(prompt, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidRequest(
                f"a prompt is a text or a list of messages, got {type(prompt).__name__}"
            )
        chat: Sequence[Any] = prompt
        return cls(
            tuple(m if isinstance(m, Message) else Message.from_dict(m) for m in chat), **fields
        )

    def with_documents_inline(self) -> Request:
        """Return the request with its documents written into the last user message.

        Engines read messages only. The documents come first and the user's own words last,
        numbered in their order; the request has no ``documents`` afterwards.
        """
        if not self.documents:
            return self
        block = "\n\n".join(
            f"[{number}] {document.title}\n{document.text}".replace("] \n", "]\n", 1)
            for number, document in enumerate(self.documents, 1)
        )
        block = f"Context:\n\n{block}\n\nQuestion: "
        at = max((i for i, m in enumerate(self.messages) if m.role == "user"), default=None)
        if at is None:
            return replace(self, messages=(*self.messages, Message.user(block)), documents=())
        asked = self.messages[at]
        first, *rest = asked.parts or (Text(""),)
        if isinstance(first, Text) and not first.fields:
            parts: tuple[Part, ...] = (replace(first, text=block + first.text), *rest)
        else:
            parts = (Text(block), first, *rest)
        messages = (*self.messages[:at], replace(asked, parts=parts), *self.messages[at + 1 :])
        return replace(self, messages=messages, documents=())


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one request, as the engine counted them.

    ``cached_tokens`` are prompt tokens that the engine did not compute again; ``forced_tokens``
    are tokens of the answer that took no forward pass of their own. ``num_calls`` is the number
    of engine calls behind the answer.
    """

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    num_calls: int = 1
    forced_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
            self.num_calls + other.num_calls,
            self.forced_tokens + other.forced_tokens,
        )


FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A finished tool call; ``arguments`` is the JSON text as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Response:
    """The whole answer.

    ``parsed`` is the value of a constrained answer and ``enforced`` how far the engine held it to
    the constraint, else None.
    """

    text: str
    parsed: Any = None
    finish_reason: FinishReason = "stop"
    usage: Usage = field(default_factory=Usage)
    report: Report = field(default_factory=Report)
    tool_calls: tuple[ToolCall, ...] = ()
    enforced: Enforcement | None = None


@dataclass(frozen=True, slots=True)
class TextDelta:
    """The next piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """The next piece of a tool call: id and name once, arguments in pieces."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Finished:
    """The last event of a stream, exactly one."""

    response: Response


Event = TextDelta | ToolCallDelta | Finished
Handler = Callable[[Request], AsyncGenerator[Event, None]]


class Middleware(Protocol):
    """A stage: an async generator around the next handler."""

    def __call__(self, request: Request, call_next: Handler, /) -> AsyncGenerator[Event, None]:
        """Yield the events of the answer; the last one is ``Finished``."""
        ...
