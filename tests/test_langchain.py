"""The LangChain steps against the real langchain-core."""

from __future__ import annotations

import re
from typing import Any

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from mill import DAYS as CONTEXT
from mill import QUESTION, WRONG

from headrace import InvalidRequest
from headrace.middleware.langchain import HeadraceCompressor, HeadraceRunnable

SYSTEM = SystemMessage("Answer in one word. Never say that you are a very helpful assistant.")
CALL = {"name": "look_up", "args": {"day": 7}, "id": "call-1", "type": "tool_call"}
TOOL = ToolMessage('{"day": 7, "sacks": [21, 22, 23, 24, 25]}', tool_call_id="call-1")


def text_of(message: BaseMessage) -> str:
    assert isinstance(message.content, str)
    return message.content


def chat() -> list[BaseMessage]:
    return [
        SYSTEM,
        HumanMessage(CONTEXT, id="first", name="Ann"),
        AIMessage("", tool_calls=[CALL]),
        TOOL,
        HumanMessage(f"{CONTEXT}\n\n{QUESTION}"),
    ]


def test_a_chat_gets_shorter_and_what_must_stay_stays() -> None:
    before = chat()
    after: list[BaseMessage] = HeadraceRunnable(rate=0.4).invoke(before)
    assert [type(m) for m in after] == [type(m) for m in before]
    assert after[0] == SYSTEM
    assert after[2:4] == before[2:4]
    assert after[1].id == "first"
    assert after[1].name == "Ann"
    assert len(text_of(after[1])) < 0.6 * len(CONTEXT)
    assert text_of(after[4]).endswith(QUESTION)


def test_a_chain_of_prompt_step_and_model() -> None:
    seen: list[Any] = []
    prompt = ChatPromptTemplate.from_template("Use this:\n{context}\n\n{question}")
    chain = prompt | HeadraceRunnable(rate=0.4) | RunnableLambda(seen.append)
    chain.invoke({"context": CONTEXT, "question": QUESTION})
    (message,) = seen[0].to_messages()
    assert message.content.startswith("Use this:")
    assert message.content.endswith(QUESTION)
    assert len(message.content) < 0.6 * len(CONTEXT)


async def test_async_and_batch_give_the_same_as_invoke() -> None:
    step = HeadraceRunnable(rate=0.4)
    once = step.invoke(chat())
    assert await step.ainvoke(chat()) == once
    assert step.batch([chat(), chat()]) == [once, once]


class Heard(BaseCallbackHandler):
    """Notes what LangChain tells its callbacks."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, Any]] = []

    def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
        self.runs.append(("start", kwargs.get("name")))

    def on_chain_end(self, outputs: Any, **kwargs: Any) -> None:
        self.runs.append(("end", outputs))

    def on_chain_error(self, error: BaseException, **kwargs: Any) -> None:
        self.runs.append(("error", type(error)))


async def test_callbacks_hear_of_each_run_with_its_name_and_of_errors() -> None:
    step, heard = HeadraceRunnable(rate=0.4), Heard()
    config: Any = {"callbacks": [heard], "run_name": "cut"}
    once = step.invoke(chat(), config)
    await step.ainvoke(chat(), config)
    with pytest.raises(InvalidRequest):
        step.invoke(5, config)  # type: ignore[arg-type]
    both = [("start", "cut"), ("end", once)]
    assert heard.runs == [*both, *both, ("start", "cut"), ("error", InvalidRequest)]


async def test_streams_give_one_piece_and_events_name_the_step() -> None:
    step = HeadraceRunnable(rate=0.4)
    once = step.invoke(chat())
    assert list(step.stream(chat())) == [once]
    assert [piece async for piece in step.astream(chat())] == [once]
    assert list(step.transform(iter([chat()[:2], chat()[2:]]))) == [once]
    events = [event async for event in step.astream_events(chat(), version="v2")]
    assert {event["name"] for event in events} == {"HeadraceRunnable"}
    assert events[-1]["event"] == "on_chain_end"


async def test_what_comes_after_the_step_streams_as_it_does_without() -> None:
    model = GenericFakeChatModel(messages=iter([AIMessage("21 sacks, on day 7.")]))
    pieces = [str(p.content) async for p in (HeadraceRunnable(rate=0.4) | model).astream(chat())]
    assert "".join(pieces) == "21 sacks, on day 7."
    assert len(pieces) > 3


async def test_one_bad_input_of_a_batch_spoils_no_other() -> None:
    step = HeadraceRunnable(rate=0.4)
    given: list[Any] = [chat(), 5, CONTEXT]
    for results in (
        step.batch(given, return_exceptions=True),
        await step.abatch(given, return_exceptions=True),
    ):
        assert results[0] == step.invoke(chat())
        assert isinstance(results[1], InvalidRequest)
        assert results[2] == step.invoke(CONTEXT)
    with pytest.raises(InvalidRequest):
        await step.abatch(given)


def test_text_and_string_prompts_keep_their_type() -> None:
    step = HeadraceRunnable(rate=0.4)
    text = f"{CONTEXT}\n\n{QUESTION}"
    assert isinstance(step.invoke(text), str)
    value = PromptTemplate.from_template("{x}").invoke({"x": text})
    assert type(step.invoke(value)) is type(value)
    assert step.invoke(value).text == step.invoke(text)


def test_images_pass_through() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    message = HumanMessage([{"type": "text", "text": CONTEXT}, image])
    (after,) = HeadraceRunnable(rate=0.4).invoke([message])
    assert after.content[1] == image
    assert len(after.content[0]["text"]) < len(CONTEXT)


def test_the_last_turn_can_be_left_alone() -> None:
    after = HeadraceRunnable(rate=0.4, last_user="keep").invoke(chat())
    assert after[4] == chat()[4]


@pytest.mark.parametrize("bad", [5, [1, 2], {"a": 1}, ["text"]])
def test_other_inputs_are_refused(bad: Any) -> None:
    with pytest.raises(InvalidRequest, match="messages"):
        HeadraceRunnable(rate=0.4).invoke(bad)


def test_no_messages_are_no_messages() -> None:
    assert HeadraceRunnable(rate=0.4).invoke([]) == []


@pytest.mark.parametrize(
    ("options", "says"), [*WRONG, ({"rat": 0.5}, "no option 'rat'; did you mean 'rate'? There are")]
)
def test_wrong_options_of_the_compressor_are_said_when_it_is_made(
    options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(says)) as raised:
        HeadraceCompressor(**options)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        *(pair for pair in WRONG if "method" not in pair[0]),
        ({}, "exactly one of"),
        ({"rate": 0.5, "last_user": "zz"}, '"keep" or "context", got \'zz\''),
        ({"rate": 0.5, "question": 3}, "question is a text, got 3"),
        ({"rate": 0.5, "keep": "Ann"}, "list of patterns, got 'Ann'"),
        ({"rate": 0.5, "keep": 3}, "got 3"),
        ({"rat": 0.5}, "no option 'rat'; did you mean 'rate'? There are rate, target_tokens"),
    ],
)
def test_wrong_options_of_the_runnable_are_said_when_it_is_made(
    options: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(says)) as raised:
        HeadraceRunnable(**options)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("bad", [["a"], "ab", None, [None]])
async def test_what_is_no_list_of_documents_is_refused(bad: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"a list of Document is taken, got ['N]"):
        HeadraceCompressor(rate=0.5).compress_documents(bad, "Who?")
    with pytest.raises(InvalidRequest, match=r"a list of Document is taken, got ['N]"):
        await HeadraceCompressor(rate=0.5).acompress_documents(bad, "Who?")


DOCUMENTS = [
    Document("The weather was fine.", metadata={"page": 1}, id="w"),
    Document(CONTEXT, metadata={"page": 2}, id="c"),
    Document("Sacks of rye are heavy.", metadata={"page": 3}, id="r"),
]


def test_documents_are_ranked_cut_and_keep_what_they_carry() -> None:
    step = HeadraceCompressor(method="bm25", top_k=2, rate=0.8)
    after = step.compress_documents(DOCUMENTS, QUESTION)
    assert [d.id for d in after] == ["c", "r"]
    assert after[0].metadata["page"] == 2
    assert after[0].metadata["relevance_score"] > after[1].metadata["relevance_score"]
    assert len(after[0].page_content) < len(CONTEXT)
    assert DOCUMENTS[1].page_content == CONTEXT


def test_without_a_budget_documents_are_only_ranked() -> None:
    after = HeadraceCompressor(method="bm25").compress_documents(DOCUMENTS, QUESTION)
    assert {d.page_content for d in after} == {d.page_content for d in DOCUMENTS}


async def test_documents_async_and_none() -> None:
    step = HeadraceCompressor(method="bm25", rate=0.5)
    assert await step.acompress_documents(DOCUMENTS, QUESTION) == step.compress_documents(
        DOCUMENTS, QUESTION
    )
    assert step.compress_documents([], QUESTION) == []
    assert await step.acompress_documents(DOCUMENTS, QUESTION, callbacks=[Heard()])


def test_documents_are_ranked_for_a_question() -> None:
    with pytest.raises(InvalidRequest, match="empty"):
        HeadraceCompressor(method="bm25").compress_documents(DOCUMENTS, " ")


def test_documents_without_text_keep_their_place() -> None:
    empty = Document("", metadata={"image": "AAAA"})
    step = HeadraceCompressor(method="bm25", rate=0.8)
    after = step.compress_documents([empty, *DOCUMENTS], QUESTION)
    assert after[0] is empty
    assert after[1:] == step.compress_documents(DOCUMENTS, QUESTION)


class Found(BaseRetriever):
    """Finds the same documents for every question."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return DOCUMENTS


async def test_langchains_compression_retriever_finds_fewer_and_shorter_documents() -> None:
    classic: Any = pytest.importorskip(
        "langchain_classic.retrievers", reason="pip install langchain-classic"
    )
    step = HeadraceCompressor(method="bm25", top_k=2, rate=0.8)
    retriever = classic.ContextualCompressionRetriever(base_compressor=step, base_retriever=Found())
    heard = Heard()
    found = retriever.invoke(QUESTION, {"callbacks": [heard]})
    assert found == step.compress_documents(DOCUMENTS, QUESTION)
    assert [document.id for document in found] == ["c", "r"]
    assert "21 sacks" in found[0].page_content
    assert len(found[0].page_content) < len(CONTEXT)
    assert await retriever.ainvoke(QUESTION) == found
    assert await retriever.abatch([QUESTION, QUESTION]) == [found, found]
    chain = retriever | (lambda kept: "\n".join(one.page_content for one in kept))
    assert "21 sacks" in await chain.ainvoke(QUESTION)


async def test_a_compression_pipeline_takes_the_compressor_as_a_step() -> None:
    base: Any = pytest.importorskip(
        "langchain_classic.retrievers.document_compressors", reason="pip install langchain-classic"
    )
    rank, cut = HeadraceCompressor(method="bm25", top_k=1), HeadraceCompressor(rate=0.5)
    both = base.DocumentCompressorPipeline(transformers=[rank, cut])
    (only,) = both.compress_documents(DOCUMENTS, QUESTION)
    assert (only.id, only.metadata["page"]) == ("c", 2)
    assert len(only.page_content) < 0.7 * len(CONTEXT)
    assert await both.acompress_documents(DOCUMENTS, QUESTION) == [only]
