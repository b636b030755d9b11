"""A wrapped client: what goes out, what comes back, and what is never touched."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from engine.upstream import DONE, HELLO, Upstream, completion, openai_like, running, says, streams
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from headrace import InvalidRequest, wrap
from headrace.middleware.wrap import report_of
from headrace.middleware.wrap_options import Options
from headrace.middleware.wrap_prepare import prepare

SENTENCE = "The old mill number {} was built of grey stone by a careful and quite patient builder. "
LONG = "".join(SENTENCE.format(i) for i in range(20))
CHAT: list[Any] = [
    {"role": "system", "content": LONG},
    {"role": "user", "content": LONG},
    {"role": "assistant", "content": "I see."},
    {"role": "user", "content": "Who built mill 7?"},
]


@pytest.fixture
def server() -> Iterator[Upstream]:
    with running(openai_like()) as upstream:
        yield upstream


@pytest.fixture
def client(server: Upstream) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=server.url, api_key="sk-test", max_retries=0) as client:
        yield client


def lexical(client: Any, **options: Any) -> Any:
    return wrap(client, **{"rate": 0.3, "compressor": "lexical", **options})


def test_only_old_turns_are_cut_and_the_report_is_on_the_response(
    server: Upstream, client: openai.OpenAI
) -> None:
    wrapped = lexical(client)
    response = wrapped.chat.completions.create(model="tiny", messages=CHAT, temperature=0)
    sent = server.seen[-1].body
    assert [m == old for m, old in zip(sent["messages"], CHAT, strict=True)] == [
        True,
        False,
        True,
        True,
    ]
    assert len(sent["messages"][1]["content"]) < 0.4 * len(LONG)
    assert response.choices[0].message.content == "Hello"
    assert response.headrace.tokens_saved > 100
    assert "headrace" not in response.model_dump()
    assert response == client.chat.completions.create(model="tiny", messages=CHAT)


def test_type_settings_and_connections_are_the_clients_own(client: openai.OpenAI) -> None:
    wrapped = lexical(client)
    assert isinstance(wrapped, openai.OpenAI)
    assert (wrapped.api_key, wrapped.base_url) == (client.api_key, client.base_url)
    assert wrapped._client is client._client
    assert type(client) is openai.OpenAI  # the given one stays as it is
    assert isinstance(wrapped.chat.completions.create(model="m", messages=CHAT), BaseModel)


def test_what_the_client_makes_of_itself_is_wrapped_too(
    server: Upstream, client: openai.OpenAI
) -> None:
    client.chat.completions.create(model="tiny", messages=CHAT)  # its resources exist by now
    lexical(client).with_options(timeout=9).chat.completions.create(model="tiny", messages=CHAT)
    assert server.seen[0].body["messages"] == CHAT
    assert server.seen[1].body["messages"] != CHAT


def test_without_options_the_request_is_the_same_bytes(
    server: Upstream, client: openai.OpenAI
) -> None:
    for one in (client, wrap(client), lexical(client, off=True)):
        one.chat.completions.create(model="tiny", messages=CHAT, seed=1)
    assert len({seen.raw for seen in server.seen}) == 1


def test_options_of_one_call_are_taken_out(server: Upstream, client: openai.OpenAI) -> None:
    wrapped = lexical(client)
    asked: Any = {"headrace": {"off": True}, "top_k": 40}
    response = wrapped.chat.completions.create(model="m", messages=CHAT, extra_body=asked)
    assert server.seen[-1].body["messages"] == CHAT
    assert server.seen[-1].body["top_k"] == 40
    assert "headrace" not in server.seen[-1].body
    assert response.headrace.stages[0].decision == "asked to leave the request alone"
    asked = {"headrace": {"target_tokens": 60, "question": "Who built mill 7?"}}
    wrapped.chat.completions.create(model="m", messages=CHAT, extra_body=asked)
    assert "mill number 7" in server.seen[-1].body["messages"][1]["content"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rte": 0.5}, "no option 'rte'"),
        ({"rate": 2}, "rate"),
        ({"rate": "half"}, "rate is a number, got 'half'"),
        ({"off": "yes"}, "off is true or false, got 'yes'"),
        ({"rates": {"tool": 7}}, "the rate of tool messages"),
        ({"rates": 0.3}, "rates is an object"),
        ({"rates": {"tools": 0.3}}, "no role 'tools'; did you mean 'tool'. There are system, "),
        ({"rates": {"robot": 0.3}}, "no role 'robot'; there are system, developer, user, assist"),
        ({"rates": {"tool": 0.5}, "every": 0}, "every is a whole number from 1 on"),
        ({"documents": "one"}, "documents is a list, got 'one'"),
        ({"top_k": 0}, "top_k is a whole number from 1 on, got 0"),
        ({"last_user": "cut"}, "last_user"),
        ([], "takes an object of options"),
        ({"plan": "auto"}, "no option 'plan'"),
    ],
)
def test_options_that_make_no_sense_are_one_line(
    options: Any, words: str, server: Upstream, client: openai.OpenAI
) -> None:
    with pytest.raises(InvalidRequest, match=words) as error:
        wrap(client).chat.completions.create(
            model="m", messages=CHAT, extra_body={"headrace": options}
        )
    assert "\n" not in str(error.value)
    assert not server.seen


def test_wrong_options_and_wrong_clients_are_said_at_once() -> None:
    with pytest.raises(InvalidRequest, match="no option 'compresor'"):
        wrap(openai.OpenAI(api_key="k"), compresor="lexical")
    for name, choice in (("method", "bm25"), ("compressor", "lexical"), ("tokenizer", "OpenAI")):
        with pytest.raises(InvalidRequest, match=f"no {name} 'zz': choose .*{choice}") as raised:
            wrap(openai.OpenAI(api_key="k"), **{name: "zz"})
        assert "\n" not in str(raised.value)
    with pytest.raises(InvalidRequest, match="takes a client of openai or anthropic"):
        wrap("http://localhost")
    with pytest.raises(InvalidRequest, match="no options for requests to /embeddings"):
        wrap(openai.OpenAI(api_key="k", base_url="http://x")).embeddings.create(
            model="m", input="x", extra_body={"headrace": {"rate": 0.5}}
        )


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"rate": 0}, "rate=0 leaves nothing of a message"),
        ({"target_tokens": 0}, "target_tokens=0 leaves nothing of a message"),
        ({"quality": 0}, "quality=0 leaves nothing of a message"),
        ({"rates": {"tool": 0}}, "the rate of tool messages: rate=0 leaves nothing of a message"),
    ],
)
def test_a_budget_of_nothing_is_refused_at_once(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidRequest, match=says) as raised:
        wrap(openai.OpenAI(api_key="k"), **options)
    assert "\n" not in str(raised.value)


async def test_what_stays_whole_because_nothing_would_be_left_is_said() -> None:
    options = Options.of({"threshold": 1, "compressor": "lexical"})
    prepared = await prepare("chat", {"messages": CHAT}, options)
    assert prepared.decision == "unchanged"
    assert "1 texts stay whole: the budget leaves nothing" in prepared.report.stages[0].decision
    part = {"type": "text", "text": LONG, "headrace": "document"}
    chat = [{"role": "user", "content": [part]}, *CHAT[2:]]
    prepared = await prepare("chat", {"messages": chat}, options)
    sent = prepared.body["messages"][0]["content"]
    assert sent == [{"type": "text", "text": LONG}]
    assert "1 marked parts stay whole: the budget" in prepared.report.stages[-1].decision


def test_streams_are_the_clients_own(server: Upstream, client: openai.OpenAI) -> None:
    stream = lexical(client).chat.completions.create(model="m", messages=CHAT, stream=True)
    assert isinstance(stream, openai.Stream)
    assert stream.headrace.tokens_saved > 100  # type: ignore[attr-defined]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Hello"
    with lexical(client).chat.completions.stream(model="m", messages=CHAT) as events:
        assert events.get_final_completion().choices[0].message.content == "Hello"
        report = report_of(events)
    assert report is not None
    assert report.tokens_saved > 100
    assert server.seen[-1].body["messages"][1]["content"] != LONG


def test_parse_and_raw_answers(server: Upstream, client: openai.OpenAI) -> None:
    class Miller(BaseModel):
        name: str

    server.script = says(completion('{"name": "Ann"}'))
    wrapped = lexical(client)
    parsed = wrapped.chat.completions.parse(model="m", messages=CHAT, response_format=Miller)
    assert parsed.choices[0].message.parsed == Miller(name="Ann")
    assert parsed.headrace.tokens_saved > 100
    schema = server.seen[-1].body["response_format"]
    client.chat.completions.parse(model="m", messages=CHAT, response_format=Miller)
    assert server.seen[-1].body["response_format"] == schema
    raw = wrapped.chat.completions.with_raw_response.create(model="m", messages=CHAT)
    assert raw.status_code == 200
    assert report_of(raw) is not None


async def test_the_asynchronous_client(server: Upstream) -> None:
    async with openai.AsyncOpenAI(base_url=server.url, api_key="k", max_retries=0) as client:
        wrapped = lexical(client)
        whole = await wrapped.chat.completions.create(model="m", messages=CHAT)
        assert whole.headrace.tokens_saved > 100
        stream = await wrapped.chat.completions.create(model="m", messages=CHAT, stream=True)
        texts = [chunk.choices[0].delta.content async for chunk in stream]
        assert "".join(texts) == "Hello"
        async with wrapped.chat.completions.stream(model="m", messages=CHAT) as events:
            final = await events.get_final_completion()
        assert final.choices[0].message.content == "Hello"
    assert all(len(seen.body["messages"][1]["content"]) < len(LONG) for seen in server.seen)


async def test_a_blocking_client_inside_a_running_loop(client: openai.OpenAI) -> None:
    response = lexical(client).chat.completions.create(model="m", messages=CHAT)
    assert response.headrace.tokens_saved > 100


def test_the_responses_api(server: Upstream, client: openai.OpenAI) -> None:
    server.script = says({"id": "r", "object": "response", "output": [], "model": "m"})
    items: list[Any] = [
        {"role": "developer", "content": LONG},
        {"role": "user", "content": [{"type": "input_text", "text": LONG}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "c1", "output": LONG},
        {"type": "message", "role": "user", "content": "Who?"},
    ]
    response = lexical(client).responses.create(model="m", input=items, instructions=LONG)
    sent = server.seen[-1].body
    same = [new == old for new, old in zip(sent["input"], items, strict=True)]
    assert same == [True, False, True, True, True, True]
    assert sent["instructions"] == LONG
    assert report_of(response) is not None
    rates = {"tool": {"0": 0.3}}
    lexical(client).responses.create(
        model="m", input=items, extra_body={"headrace": {"rates": rates}}
    )
    output = server.seen[-1].body["input"][4]
    assert len(output["output"]) < 0.4 * len(LONG)
    assert output["call_id"] == "c1"
    lexical(client).responses.create(model="m", input=LONG)
    assert server.seen[-1].body["input"] == LONG  # the only user turn


def test_plain_completions_get_documents(server: Upstream, client: openai.OpenAI) -> None:
    server.script = says({"id": "c", "object": "text_completion", "choices": [], "model": "m"})
    wrapped = lexical(client, method="bm25")
    wrapped.completions.create(model="m", prompt=LONG)
    assert server.seen[-1].body["prompt"] == LONG
    asked = {"documents": ["Ann built mill 7.", "Bob had a boat."], "top_k": 1, "rate": None}
    wrapped.completions.create(
        model="m", prompt="Who built mill 7?", extra_body={"headrace": asked}
    )
    prompt = "Context:\n\n[1]\nAnn built mill 7.\n\nQuestion: Who built mill 7?"
    assert server.seen[-1].body == {"model": "m", "prompt": prompt}
    wrapped.completions.create(model="m", prompt=["a", "b"])
    assert server.seen[-1].body["prompt"] == ["a", "b"]


def test_a_body_that_nobody_can_read_is_left_to_the_server(
    server: Upstream, client: openai.OpenAI
) -> None:
    for messages in ([], [{"content": "no role"}], "text"):
        response = lexical(client).chat.completions.create(model="m", messages=messages)
        assert server.seen[-1].body["messages"] == messages
        assert "not in a shape that is read" in response.headrace.stages[0].decision


def test_anthropics_client(server: Upstream) -> None:
    anthropic = pytest.importorskip("anthropic")
    server.script = says(
        {"id": "m", "type": "message", "role": "assistant", "content": [], "model": "m"}
    )
    call = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": LONG}
    messages = [
        {"role": "user", "content": LONG},
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "Who?"},
    ]
    url = server.url.removesuffix("/v1")
    with anthropic.Anthropic(base_url=url, api_key="k", max_retries=0) as client:
        wrapped = lexical(client)
        assert isinstance(wrapped, anthropic.Anthropic)
        reply = wrapped.messages.create(model="m", max_tokens=5, system=LONG, messages=messages)
        sent = server.seen[-1].body
        assert sent["system"] == LONG
        assert sent["messages"][1:] == messages[1:]
        assert len(sent["messages"][0]["content"]) < 0.4 * len(LONG)
        assert reply.headrace.tokens_saved > 100
        rates: Any = {"headrace": {"rates": {"tool": {0: 0.3}}}}
        wrapped.messages.create(model="m", max_tokens=5, messages=messages, extra_body=rates)
        [block] = server.seen[-1].body["messages"][2]["content"]
        assert block["tool_use_id"] == "t1"
        assert len(block["content"]) < 0.4 * len(LONG)


def test_errors_of_the_server_are_the_clients_own(server: Upstream, client: openai.OpenAI) -> None:
    server.script = says({"error": {"message": "no such model", "code": "x"}}, 404)
    with pytest.raises(openai.NotFoundError, match="no such model"):
        lexical(client).chat.completions.create(model="m", messages=CHAT)


def test_a_stage_that_fails_sends_the_request_as_it_is(
    server: Upstream, client: openai.OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    wrapped: Any = wrap(client, rate=0.5, compressor="nobody/has-this-model")
    response = wrapped.chat.completions.create(model="m", messages=CHAT)
    assert server.seen[-1].body["messages"] == CHAT
    assert "failed, request passed on unchanged" in response.headrace.stages[0].decision


def test_marked_parts_are_cut_for_their_question_and_marks_are_not_sent(
    server: Upstream, client: openai.OpenAI
) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    content = [
        {"type": "text", "text": LONG, "headrace": "document"},
        image,
        {"type": "text", "text": LONG, "headrace": "keep"},
        {"type": "text", "text": "Who built mill 7?"},
    ]
    chat: Any = [{"role": "user", "content": content}]
    lexical(client).chat.completions.create(model="m", messages=chat)
    [message] = server.seen[-1].body["messages"]
    assert [part.get("type") for part in message["content"]] == [
        "text",
        "image_url",
        "text",
        "text",
    ]
    assert "mill number 7 was built" in message["content"][0]["text"]
    assert len(message["content"][0]["text"]) < 0.5 * len(LONG)
    assert message["content"][1] == image
    assert message["content"][2] == {"type": "text", "text": LONG}
    assert "headrace" not in json.dumps(message)
    later = [*chat, {"role": "assistant", "content": "Bob."}, {"role": "user", "content": "When?"}]
    lexical(client).chat.completions.create(model="m", messages=later)
    assert server.seen[-1].body["messages"][0]["content"][0] == message["content"][0]
    bad: Any = [{"role": "user", "content": [{"type": "text", "text": "a", "headrace": "x"}]}]
    with pytest.raises(InvalidRequest, match='marked "document" or "keep"'):
        lexical(client).chat.completions.create(model="m", messages=bad)


def test_the_whole_request_arrives_piece_by_piece(server: Upstream, client: openai.OpenAI) -> None:
    server.script = streams(*(bytes([byte]) for byte in b"".join((*HELLO, DONE))))
    stream = lexical(client).chat.completions.create(model="m", messages=CHAT, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "Hello"


WORDS = st.sampled_from(
    (
        *("role", "content", "type", "text", "user", "tool", "assistant", "tool_calls", "headrace"),
        *("document", "keep", "tool_result", "function_call_output", "output", "message", LONG),
    )
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(
    kind=st.sampled_from(["chat", "completions", "responses", "messages"]),
    said=st.lists(st.dictionaries(WORDS, VALUES, max_size=4), max_size=4) | VALUES,
)
def test_no_body_however_odd_breaks_it_or_is_changed_in_place(kind: Any, said: Any) -> None:
    body = {"messages": said, "prompt": said, "input": said, "x": 1}
    before = json.dumps(body)
    options = Options.of({"rate": 0.3, "compressor": "lexical", "rates": {"tool": {0: 0.3}}})
    with contextlib.suppress(InvalidRequest):  # a mark that there is not
        prepared = asyncio.run(prepare(kind, body, options))
        assert len(json.dumps(prepared.body)) <= len(before)
    assert json.dumps(body) == before
