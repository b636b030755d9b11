"""The agent middleware in the real agent loop of langchain.

The model is scripted, as langchain's own tests do it: which tools are called is not what is tested
here. What the tools return is real text, compressed for real.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("langchain", reason="pip install 'headrace[langchain]'")

from engine.agents import (
    FLIGHTS,
    PARTS,
    SYSTEM,
    TASK,
    USER,
    Scripted,
    calls,
    is_paired,
    read,
    results,
    run,
    scripted,
    size,
)
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.language_models import SimpleChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import tool
from pydantic import PrivateAttr

import headrace
from headrace import InvalidRequest
from headrace.middleware.langchain_agent import HeadraceMiddleware


def test_old_results_get_shorter_than_recent_ones_and_the_state_keeps_all() -> None:
    model = scripted(*["read"] * 7)
    state = run(model, HeadraceMiddleware(every=2, results={1: 0.6, 3: 0.2}))
    whole, sent = results(state["messages"]), results(model._sent[-1])
    shares = [size(new) / size(old) for new, old in zip(sent, whole, strict=True)]
    assert shares[0] < 0.35 < min(shares[1:5])
    assert max(shares[1:5]) < 0.75
    assert shares[5:] == [1, 1]
    assert whole[0].content == read.invoke({"part": 0})
    assert state["messages"][-1].content == "Part 3 names patents."


def test_a_single_number_is_the_share_from_the_end_of_the_first_block_on() -> None:
    model = scripted(*["read"] * 4)
    run(model, HeadraceMiddleware(every=3, results=0.3))
    assert len(model._sent) == 5
    for at, sent in enumerate(model._sent):
        whole = [one.content == read.invoke({"part": n}) for n, one in enumerate(results(sent))]
        assert whole == [at < 3 or n > 1 for n in range(at)]


def test_fault_17_calls_and_results_stay_paired_whatever_is_cut() -> None:
    model = scripted("read", "flights", "passenger", "read", "read")
    state = run(model, HeadraceMiddleware(every=1, results={1: 0.01}, turns=0.01))
    assert [len(sent) for sent in model._sent] == [2, 4, 6, 8, 10, 12]
    assert all(is_paired(sent) for sent in model._sent)
    ids = [message.id for message in state["messages"][:-1]]
    assert [message.id for message in model._sent[-1][1:]] == ids


def test_fault_14_json_results_keep_every_record_key_and_number() -> None:
    model = scripted("flights", "passenger", "read")
    run(model, HeadraceMiddleware(every=1, results={1: 0.3}))
    list_of, one, _ = results(model._sent[-1])
    assert size(list_of) < 0.7 * len(json.dumps(FLIGHTS))
    for new, old in zip(json.loads(str(list_of.content)), FLIGHTS, strict=True):
        assert {**new, "note": ""} == {**old, "note": ""}
    assert {**json.loads(str(one.content)), "note": ""} == {**USER, "note": ""}


def test_fault_15_a_json_string_stays_one() -> None:
    log = "\n".join(f"INFO pump {n} started, all valves of the upper line open" for n in range(40))
    messages = [
        HumanMessage(TASK),
        AIMessage("", tool_calls=[{"name": "log", "args": {}, "id": "a"}]),
        ToolMessage(json.dumps(log), tool_call_id="a"),
        AIMessage("", tool_calls=[{"name": "log", "args": {}, "id": "b"}]),
        ToolMessage("done", tool_call_id="b"),
    ]
    model = scripted()
    agent: Any = create_agent(
        model, [read], middleware=[HeadraceMiddleware(every=1, results={1: 0.3})]
    )
    agent.invoke({"messages": messages})
    (first, _) = results(model._sent[-1])
    assert isinstance(json.loads(str(first.content)), str)


def test_fault_16_the_arguments_of_calls_are_the_same_bytes() -> None:
    long = {"part": 0, "text": "\n\n".join(PARTS) * 9}
    assert len(json.dumps(long)) > 100_000 - 1
    call = AIMessage(" ".join(PARTS[3:6]), tool_calls=[{"name": "read", "args": long, "id": "a"}])
    messages = [HumanMessage(TASK), call, ToolMessage(PARTS[5] * 3, tool_call_id="a")]
    model = scripted("read")
    agent: Any = create_agent(
        model, [read], middleware=[HeadraceMiddleware(every=1, results={0: 0.2}, turns=0.2)]
    )
    agent.invoke({"messages": messages})
    after = model._sent[-1][1]
    assert isinstance(after, AIMessage)
    assert (after.tool_calls, after.content) == (call.tool_calls, call.content)


def test_system_message_and_last_user_turn_are_untouched_and_earlier_words_on_request() -> None:
    said = " ".join(PARTS[3:6])
    messages = [HumanMessage(said, id="1"), AIMessage(said, id="2"), HumanMessage(said, id="3")]
    sent: dict[float, list[BaseMessage]] = {}
    for turns in (1, 0.4):
        model = scripted()
        agent: Any = create_agent(
            model,
            [read],
            system_prompt=SYSTEM,
            middleware=[HeadraceMiddleware(every=1, turns=turns)],
        )
        agent.invoke({"messages": messages})
        sent[turns] = model._sent[-1]
    assert sent[1][1:] == messages
    assert sent[0.4][0] == SystemMessage(SYSTEM)
    assert sent[0.4][3] == messages[2]
    assert sent[0.4][2].id == "2"
    assert size(sent[0.4][2]) < 0.6 * len(said)


def test_fault_20_between_blocks_what_was_sent_stays_the_same_in_another_process_too() -> None:
    sent: list[list[list[BaseMessage]]] = []
    for _ in range(2):  # each with a memory of its own
        model = scripted(*["read"] * 8)
        run(model, HeadraceMiddleware(every=4, results={1: 0.5, 2: 0.2}))
        sent.append(model._sent)
    bodies = [[(m.type, m.content) for m in messages] for messages in sent[0]]
    assert bodies == [[(m.type, m.content) for m in messages] for messages in sent[1]]
    begins = [new[: len(old)] == old for old, new in pairwise(bodies)]
    assert [at for at, same in enumerate(begins, 1) if not same] == [4, 8]


def test_fault_21_no_marker_and_no_tool_by_default() -> None:
    model = scripted("read", "passenger", "read")
    run(model, HeadraceMiddleware(every=1, results={1: 0.3}))
    assert all(tools == ["read", "flights", "passenger"] for tools in model._tools)
    text = str(model._sent)
    assert "shortened" not in text
    assert "retrieve" not in text


def test_the_model_can_ask_for_what_was_cut() -> None:
    answers = calls("read", "passenger", "flights")
    ask = {"name": "retrieve", "args": {"call_id": "call-0"}, "id": "call-9"}
    wrong = {"name": "retrieve", "args": {"call_id": "call-77"}, "id": "call-10"}
    model = Scripted(
        messages=iter([*answers[:-1], AIMessage("", tool_calls=[ask, wrong]), *answers[-1:]])
    )
    run(model, HeadraceMiddleware(every=1, results={1: 0.3}, retrieve=True))
    assert "retrieve" in model._tools[-1]
    text, one, list_of, given, none = results(model._sent[-1])
    assert str(text.content).endswith('[shortened; retrieve(call_id="call-0") returns all of it]')
    assert json.loads(str(one.content))["shortened"] == "call-1"
    assert len(json.loads(str(list_of.content))) == len(FLIGHTS)
    assert given.content == read.invoke({"part": 0})
    assert "There is no result 'call-77'. There are: call-0" in str(none.content)
    assert is_paired(model._sent[-1])


def test_what_the_model_asked_for_is_sent_whole_at_every_age() -> None:
    ask = {"name": "retrieve", "args": {"call_id": "call-0"}, "id": "again"}
    first, *rest = calls("read", *["passenger"] * 4)
    model = Scripted(messages=iter([first, AIMessage("", tool_calls=[ask]), *rest]))
    run(model, HeadraceMiddleware(every=1, results={0: 0.5, 2: 0.2}, retrieve=True))
    assert len(model._sent) == 7
    for sent in model._sent[2:]:
        cut, whole = results(sent)[:2]
        assert len(str(cut.content)) < 0.7 * len(str(whole.content))
        assert whole.content == read.invoke({"part": 0})


@tool
def retrieve(part: int) -> str:
    """Return something else."""
    return "other"


def test_a_tool_of_the_callers_with_that_name_is_refused() -> None:
    agent: Any = create_agent(
        scripted(), [retrieve], middleware=[HeadraceMiddleware(retrieve=True)]
    )
    with pytest.raises(InvalidRequest, match="rename"):
        agent.invoke({"messages": [HumanMessage(TASK)]})


async def test_async_streaming_and_sync_send_the_same() -> None:
    sent: list[Any] = []
    for way in ("invoke", "ainvoke", "astream"):
        model = scripted(*["read"] * 3)
        middleware = HeadraceMiddleware(every=1, results={1: 0.3})
        agent: Any = create_agent(model, [read], system_prompt=SYSTEM, middleware=[middleware])
        given = {"messages": [HumanMessage(TASK)]}
        if way == "invoke":
            agent.invoke(given)
        elif way == "ainvoke":
            await agent.ainvoke(given)
        else:
            events = [event async for event in agent.astream(given, stream_mode="messages")]
            assert "".join(str(m.content) for m, _ in events[-5:]).endswith("patents.")
        sent.append([[m.content for m in messages] for messages in model._sent])
    assert sent[0] == sent[1] == sent[2]


def test_parallel_calls_and_images_stay() -> None:
    image = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
    text = {"type": "text", "text": " ".join(PARTS[3:6])}
    both = [{"name": "read", "args": {"part": at}, "id": str(at)} for at in range(2)]
    messages = [
        HumanMessage(TASK),
        AIMessage("", tool_calls=both),
        ToolMessage([text, image], tool_call_id="1", artifact={"raw": 1}, name="read"),
        ToolMessage(text["text"], tool_call_id="0"),
    ]
    model = scripted()
    agent: Any = create_agent(model, [read], middleware=[HeadraceMiddleware(results={0: 0.3})])
    agent.invoke({"messages": messages})
    first, second = results(model._sent[-1])
    assert first.content[1] == image
    assert len(first.content[0]["text"]) < 0.5 * len(text["text"])
    assert (first.tool_call_id, second.tool_call_id) == ("1", "0")
    assert (first.artifact, first.name) == ({"raw": 1}, "read")


def test_the_answer_says_what_was_saved() -> None:
    state = run(scripted(*["read"] * 2), HeadraceMiddleware(every=1, results={1: 0.3}))
    said = state["messages"][-1].response_metadata["headrace"]
    assert said["tokens_out"] < 0.9 * said["tokens_in"]
    first = state["messages"][1].response_metadata["headrace"]
    assert first["decision"]


def test_a_failure_sends_the_request_as_it_is_and_says_so(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any) -> Any:
        raise RuntimeError("no memory left")

    middleware = HeadraceMiddleware(every=1)
    monkeypatch.setattr(type(middleware._stage), "transform", fail)
    with caplog.at_level(logging.WARNING):
        state = run(scripted("read"), middleware)
    assert "no memory left" in caplog.text
    assert "failed" in state["messages"][-1].response_metadata["headrace"]["decision"]


class Other(AgentMiddleware[Any, Any, Any]):
    """A middleware further in, which sees what ours made."""

    def __init__(self) -> None:
        super().__init__()
        self.systems: list[Any] = []

    def wrap_model_call(self, request: ModelRequest[Any], handler: Any) -> ModelResponse[Any]:
        self.systems.append(request.system_message)
        return handler(request)


def test_other_middleware_sees_the_same_system_message() -> None:
    other = Other()
    run(scripted("read"), HeadraceMiddleware(every=1, turns=0.1), other)
    assert other.systems == [SystemMessage(SYSTEM)] * 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"results": 1.5}, "1.5"),
        ({"every": 0}, "every"),
        ({"result": 0.5}, "no option 'result'; did you mean 'results'"),
        ({"turns": 0}, "turns: rate=0 leaves nothing of a message"),
        ({"turns": 2}, r"turns: rate must be in \[0, 1\], got 2"),
        ({"turns": -1}, "-1"),
        ({"compressor": "zz"}, "no compressor 'zz': choose auto, lexical"),
        ({"tokenizer": "zz"}, "no tokenizer 'zz': choose None"),
        ({"keep": "Ann"}, "list of patterns, got 'Ann'"),
        ({"json": {}}, "json is a JsonPolicy, got {}"),
        ({"fold": 1}, "fold is True or False, got 1"),
        ({"retrieve": "yes"}, "retrieve is True or False, got 'yes'"),
    ],
)
def test_wrong_options_are_said_when_it_is_made(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidRequest, match=says):
        HeadraceMiddleware(**options)


class Small(SimpleChatModel):
    """The small model in process, as a chat model; it is never asked to call tools."""

    _prompts: list[str] = PrivateAttr(default_factory=list[str])

    @property
    def _llm_type(self) -> str:
        return "small"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, Any]:
        return self

    def _call(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> str:
        self._prompts.append("\n".join(str(message.content) for message in messages))
        return headrace.generate(self._prompts[-1], plan="off", max_tokens=40).text


@pytest.mark.model
@pytest.mark.slow
def test_a_real_model_answers_from_a_shorter_result() -> None:
    found = (
        "Viktor Kaplan, who as it happens came from Austria, patented a turbine in 1913. "
        "It was, as everybody knows by now, of very great use to a large number of people."
    )
    model = Small()
    agent: Any = create_agent(model, [read], middleware=[HeadraceMiddleware(results={0: 0.7})])
    call = {"name": "read", "args": {"part": 0}, "id": "a"}
    state = agent.invoke(
        {
            "messages": [
                AIMessage("", tool_calls=[call]),
                ToolMessage(found, tool_call_id="a"),
                HumanMessage("When did Kaplan patent his turbine?"),
            ]
        }
    )
    assert "1913" in state["messages"][-1].content
    assert found not in model._prompts[0]
