"""The plain functions, and the pipeline that they are made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Literal, TypedDict, Unpack, cast, overload
from weakref import WeakKeyDictionary

from ..backends import Backend, make_backend
from ..compressors import Compressed, Compressor, JsonPolicy
from ..compressors import compress_tools as shorten
from ..compressors import rerank as rank
from ..compressors.context import Context, Order
from ..compressors.documents import compress_documents as choose
from . import parts
from .blocking import Loop
from .compress import Compress
from .constrain import Constrain
from .constraints import constraint as make_constraint
from .cost.predict import Predictor, predictor_of
from .dispatcher import Dispatcher
from .errors import HeadraceError, InvalidRequest
from .objects import PartialObject, partial_objects
from .pipeline import Pipeline
from .plan import Plan
from .rerank import Rerank
from .shown import shown
from .types import Document, Message, Middleware, Request, Response, Sampling

PlanStrategy = Literal["auto", "map", "template", "skeleton", "graph", "decide", "sot", "off"]
DocumentLike = str | Mapping[str, Any] | Document
PromptLike = str | Sequence[Mapping[str, Any] | Message]


class CompressOptions(TypedDict, total=False):
    """What ``compress`` takes beside the texts; see there."""

    rate: float | None
    target_tokens: int | None
    threshold: float | None
    quality: float | None
    question: str | None
    compressor: str
    tokenizer: str | None
    keep: Sequence[str | re.Pattern[str]]
    force_keep: Sequence[str | re.Pattern[str]]
    force_drop: Sequence[str | re.Pattern[str]]
    drop_consecutive: bool
    keep_digits: bool
    segments: bool
    formats: Sequence[str | None] | None
    json: JsonPolicy | None
    fold: bool
    progress: Callable[[int, int], None] | None


@overload
def compress(texts: str, **options: Unpack[CompressOptions]) -> Compressed: ...
@overload
def compress(
    texts: list[str] | tuple[str, ...], **options: Unpack[CompressOptions]
) -> list[Compressed]: ...
def compress(
    texts: str | list[str] | tuple[str, ...], **options: Unpack[CompressOptions]
) -> Compressed | list[Compressed]:
    """Make a text, or each of several, shorter by dropping what matters least.

    At most one of the budgets is given: ``rate`` is the share of tokens kept in [0, 1] (0.5 when
    no budget is given), ``target_tokens`` the number of tokens at most, ``threshold`` the least
    importance in [0, 1], ``quality`` the share of all importance in [0, 1] that stays. ``question``
    says what the text will be asked. Tokens are counted with ``tokenizer`` (a Hugging Face name or
    folder, an OpenAI model; None: a built-in approximation), with which the result never has more
    tokens than asked for. ``compressor`` is "auto", "lexical", "mini", "sentences", "perplexity",
    "selective-context", "longllmlingua", or a token-classification model.

    ``keep`` are patterns whose matches stay, ``force_keep`` and ``force_drop`` words or strings
    that stay or go; ``drop_consecutive``, ``keep_digits``, ``segments``, ``formats``, ``json``,
    ``fold`` and ``progress`` are those of ``compressors.Compressor.compress``.

    Every character of the result is the original's, at ``spans``, but for the counts of folded log
    lines (``notes``); what could not be compressed as asked says why in ``reason``. Raises
    InvalidRequest and ModelUnavailable.
    """
    many = [texts] if isinstance(texts, str) else texts
    results = _compress(many, **options)
    return results[0] if isinstance(texts, str) else results


def _compress(
    texts: Sequence[str],
    *,
    rate: float | None = None,
    target_tokens: int | None = None,
    threshold: float | None = None,
    quality: float | None = None,
    question: str | None = None,
    compressor: str = "auto",
    tokenizer: str | None = None,
    **others: Any,
) -> list[Compressed]:
    if question is not None and not isinstance(question, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f"question is a text, got {type(question).__name__}")
    if unknown := sorted(set(others) - CompressOptions.__optional_keys__):
        raise InvalidRequest(
            f"compress has no option {unknown[0]!r}; it has"
            f" {', '.join(sorted(CompressOptions.__optional_keys__))}"
        )
    if not isinstance(texts, Sequence) or isinstance(texts, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f"compress takes a text or a list of texts, got {texts!r:.60}")
    policy = others.pop("json", None)
    if isinstance(policy, Mapping):
        policy = JsonPolicy(cast("Mapping[str, Any]", policy))
    if not isinstance(policy, JsonPolicy | None):
        raise InvalidRequest(f"json takes a JsonPolicy or its rules, got {policy!r:.60}")
    budget = parts.budget(rate, target_tokens, threshold, quality)
    engine = Compressor(parts.scorer(compressor), parts.counter(tokenizer))
    return engine.compress(texts, budget, question=question, json=policy, **others)


def rerank(
    question: str,
    documents: Sequence[DocumentLike],
    *,
    top_k: int | None = None,
    method: str = "auto",
) -> list[Document]:
    """Return the documents that answer the question best, best first, with ``score`` set.

    ``method`` is "auto", "bm25", "bi-encoder", "mini", "perplexity" or a sentence-transformers
    model, bi-encoder or cross-encoder. Documents
    are texts, mappings with ``text`` (and ``id``, ``title``, other keys as metadata) or Document;
    what they carry is kept.
    """
    return rank(question, _documents(documents), top_k=top_k, reranker=parts.reranker(method))


def compress_tools(
    tools: Sequence[Mapping[str, Any]],
    *,
    rate: float | None = None,
    target_tokens: int | None = None,
    question: str | None = None,
    compressor: str = "auto",
    tokenizer: str | None = None,
) -> list[dict[str, Any]]:
    """Return tool schemas with shorter descriptions, and nothing else of them changed.

    The budget is over all descriptions together, half of their tokens when none is given; names,
    types, enums, required, defaults and ``$ref`` stay as they are. Raises InvalidRequest and
    ModelUnavailable.
    """
    return shorten(
        tools,
        parts.budget(rate, target_tokens, None),
        scorer=parts.scorer(compressor),
        counter=parts.counter(tokenizer),
        question=question,
    )


def compress_documents(
    question: str,
    documents: Sequence[DocumentLike],
    *,
    rate: float | None = None,
    target_tokens: int | None = None,
    method: str = "auto",
    sentences: str | None = "auto",
    compressor: str | None = "auto",
    top_k: int | None = None,
    order: Order = "best first",
    tokenizer: str | None = None,
    keep: Sequence[str | re.Pattern[str]] = (),
) -> Context:
    """Return what of the documents answers the question: documents, sentences, words in one call.

    One budget over all documents as ``Context.text`` writes them, titles and all: ``rate`` is the
    share of tokens kept in [0, 1] (0.5 when no budget is given), ``target_tokens`` the number of
    tokens at most. ``method`` ranks the documents (as in ``rerank``), ``sentences`` their sentences
    ("auto", "mini" or a reranker's name; None: that step is left out), and ``compressor`` the words
    (as in ``compress``; None: sentences stay or go as a whole). The result says which documents,
    sentences and characters are kept, with their scores, and why each other document is not; ids
    and metadata are kept. Raises InvalidRequest and ModelUnavailable.
    """
    return choose(
        question,
        _documents(documents),
        parts.budget(rate, target_tokens, None),
        reranker=parts.reranker(method),
        scorer=None if compressor is None else parts.scorer(compressor),
        counter=parts.counter(tokenizer),
        sentences=None if sentences is None else parts.sentences(sentences),
        top_k=top_k,
        order=order,
        keep=keep,
    )


def generate(
    prompt: PromptLike,
    *,
    documents: Sequence[DocumentLike] = (),
    backend: str | Backend | None = None,
    model: str | None = None,
    rate: float | None = None,
    when: Literal["always", "pays"] = "always",
    top_k: int | None = None,
    plan: PlanStrategy | Plan = "auto",
    constraint: Any = None,
    max_tokens: int | None = None,
) -> Response:
    """Answer a prompt or a chat: rerank, compress, plan, constrain, dispatch.

    ``backend`` is None (the small language model in process), the URL of an OpenAI-compatible
    server, or a Backend; ``model`` is that engine's model. ``rate`` switches compression on,
    and with ``when="pays"`` only where that is predicted to save time (``Compress``);
    ``top_k`` is how many documents stay; ``constraint`` is what ``headrace.constraint`` takes.
    ``plan`` is a strategy, or a stage with everything else that ``Plan`` can be told:
    ``Plan("skeleton", when="always", race=True)``, ``Plan(outline=("Costs", "Noise"))``. One that
    is kept knows from earlier calls how fast the engine is. The response's ``report`` says what
    each stage did. Engines are loaded once and shared by all calls.
    """
    request = make_request(
        prompt, documents=documents, constraint=constraint, max_tokens=max_tokens
    )
    # What makes no sense is said before an engine is loaded.
    _ = stages(request, rate=rate, when=when, top_k=top_k, plan=plan)
    dispatcher, loop = _engine(backend, model)
    tokenizer = loop.run(dispatcher.backend.capabilities()).tokenizer
    cost = engine_cost(dispatcher.backend, loop) if when == "pays" else None
    chain = stages(
        request, rate=rate, when=when, cost=cost, top_k=top_k, plan=plan, tokenizer=tokenizer
    )
    return Pipeline(chain, dispatcher, loop=loop).run_sync(request)


def stream_objects(
    prompt: PromptLike,
    constraint: Any,
    *,
    grow: bool = False,
    documents: Sequence[DocumentLike] = (),
    backend: str | Backend | None = None,
    model: str | None = None,
    rate: float | None = None,
    top_k: int | None = None,
    plan: PlanStrategy | Plan = "auto",
    max_tokens: int | None = None,
) -> Iterator[PartialObject]:
    """Answer a prompt as an object, and yield it as far as it is certain while it is written.

    ``constraint`` is what ``headrace.constraint`` takes, and the other arguments those of
    ``generate``. Each ``PartialObject.value`` holds the fields that are finished (with ``grow``,
    also the text that is being written); the last one is the validated value, with the response.
    An answer that turns out to be invalid is not asked for again: what was shown of it is.
    ``partial_objects`` is the asynchronous form, for any pipeline.
    """
    request = make_request(
        prompt, documents=documents, constraint=constraint, max_tokens=max_tokens
    )
    if request.constraint is None:
        raise InvalidRequest("stream_objects needs a constraint; stream text with a Pipeline")
    _ = stages(request, rate=rate, top_k=top_k, plan=plan, retries=0)
    dispatcher, loop = _engine(backend, model)
    tokenizer = loop.run(dispatcher.backend.capabilities()).tokenizer
    chain = stages(request, rate=rate, top_k=top_k, plan=plan, tokenizer=tokenizer, retries=0)
    events = Pipeline(chain, dispatcher, loop=loop).stream(request)
    return loop.iterate(partial_objects(events, request.constraint, grow=grow))


def make_request(
    prompt: PromptLike,
    *,
    documents: Sequence[DocumentLike] = (),
    constraint: Any = None,
    max_tokens: int | None = None,
) -> Request:
    """Return the request that ``generate`` sends, from what people have at hand."""
    return Request.of(
        prompt,
        documents=_documents(documents),
        constraint=None if constraint is None else make_constraint(constraint),
        sampling=Sampling(max_tokens=max_tokens),
    )


def stages(
    request: Request,
    *,
    rate: float | None = None,
    when: Literal["always", "pays"] = "always",
    cost: Predictor | None = None,
    top_k: int | None = None,
    plan: PlanStrategy | Plan = "auto",
    tokenizer: str | None = None,
    retries: int = 1,
) -> list[Middleware]:
    """Return the stages that the request has use for, in their usual order.

    ``cost`` is what the engine's steps are predicted to cost, for what is to pay: compressing, and
    planning where ``plan`` is a strategy. A ``Plan`` is taken as it is. Raises InvalidRequest.
    """
    if when == "pays" and rate is None:
        raise InvalidRequest('when="pays" says when to compress; give a rate too, such as 0.5')
    chain: list[Middleware] = []
    if request.documents:
        chain.append(Rerank(top_k))
    if rate is not None:
        last_user: Literal["keep", "context"] = "keep" if request.documents else "context"
        chain.append(Compress(rate, tokenizer=tokenizer, last_user=last_user, when=when, cost=cost))
    chain.append(_planning(plan, cost))
    chain.append(Constrain(retries=retries))
    return chain


def _planning(plan: PlanStrategy | Plan, cost: Predictor | None = None) -> Plan:
    """Return the stage of a strategy, or the one that is given. Raises InvalidRequest."""
    return plan if isinstance(plan, Plan) else Plan(plan, cost=cost)


def _documents(many: Sequence[DocumentLike]) -> tuple[Document, ...]:
    if isinstance(many, (str, Mapping)):
        raise InvalidRequest("documents is a list of documents; put the one into a list")
    if not isinstance(many, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f"documents is a list of documents, got {many!r:.60}")
    return tuple(document(one) for one in many)


def document(one: DocumentLike) -> Document:
    """Read a document from a text, a mapping with ``text``, or a Document."""
    if isinstance(one, Document):
        return one
    if isinstance(one, str):
        return Document(one)
    if not isinstance(one, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f"a document is a text or a mapping, got {type(one).__name__}")
    fields = dict(one)
    text, title = fields.pop("text", None), fields.pop("title", None)
    if not isinstance(text, str):
        raise InvalidRequest(f"a document needs a text, got {shown(dict(one), 120)}")
    if not isinstance(title, str | None):
        raise InvalidRequest(f"a document's title is text, got {title!r:.80}")
    given = fields.pop("id", None)
    score = fields.pop("score", None)
    return Document(
        text,
        title or "",
        None if given is None else str(given),
        cast("float | None", score),
        fields,
    )


def _engine(backend: str | Backend | None, model: str | None) -> tuple[Dispatcher, Loop]:
    """Return the engine's dispatcher, and the loop that all blocking calls share."""
    if backend is None or isinstance(backend, str):
        return _named_engine(backend, model), _loop()
    if model is not None:
        raise InvalidRequest("model is the backend's own choice when a Backend is passed")
    return Dispatcher(backend), _loop()


@cache
def _named_engine(backend: str | None, model: str | None) -> Dispatcher:
    """One dispatcher an engine, so that calls from many threads share batches."""
    return Dispatcher(make_backend(backend, model))


def engine_cost(backend: Backend, loop: Loop) -> Predictor | None:
    """Return what is known of an engine's times, the same each time; None: nothing."""
    known = _costs()
    if backend not in known:
        try:
            known[backend] = predictor_of(loop.run(backend.capabilities()))
        except HeadraceError:  # a model that cannot be counted: as good as unknown
            known[backend] = None
    return known[backend]


@cache
def _costs() -> WeakKeyDictionary[Backend, Predictor | None]:
    return WeakKeyDictionary()


@lru_cache(maxsize=1)
def _loop() -> Loop:
    return Loop()
