"""The stage that makes the prompt shorter."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, cast

from ..compressors import Budget, Compressed, Compressor
from ..compressors.keep import check_keep
from ..compressors.structured.policy import JsonPolicy
from ..compressors.structured.schemas import compress_tools
from . import parts
from .cost.pays import Judge, Outlook, Verdict, watched
from .cost.predict import Predictor
from .errors import InvalidRequest
from .memory import Memory
from .report import StageReport
from .threads import in_thread
from .transform import Transform
from .turns import Rates, Slot, check_leaves_some, checked, cuttable, last_user, put_back
from .types import Document, Event, Handler, Request, Text

ASKS = re.compile(r"[?？؟]")
SENTENCE_END = re.compile(r"\n|(?<=[.!?])\s+|(?<=[。！？])")
FILE_NAME = re.compile(r"[^\n]*\.\w{1,10}")
SHORT_TURN = 20  # tokens; a turn of no more is left alone
REMEMBERED = 2048  # messages; about 2 kB each
NOTHING = "nothing that may be cut"
REDONE = "one budget for all turns, so those sent before may change"
EMPTIED = "the budget leaves nothing of them, and an empty message cannot be sent"


@dataclass(frozen=True, slots=True)
class _Cut:
    """What is left of a text, and why not less."""

    text: str
    reason: str | None
    scorer: str
    because: str | None

    @classmethod
    def of(cls, result: Compressed) -> _Cut:
        return cls(result.text, result.reason, result.compressor, result.because)


@dataclass(frozen=True)
class Compress(Transform):
    """Drop what the answer needs least.

    Exactly one of ``rate``, ``target_tokens``, ``threshold`` and ``quality`` is the budget for the
    documents and the turns before the last user turn. System and tool messages and the question
    are not touched, nor is a turn of 20 tokens or less; code is never cut. ``last_user="context"``
    lets the last user turn be cut too, but for its first and last sentence and every sentence that
    asks something. A document that nothing is left of is left out; a turn is left whole then, since
    engines refuse an empty one, and the report says so. A budget of 0 is refused for that, unless
    ``keep`` says what stays.

    ``rates`` gives a role its own rate, ``{"system": 0.8, "tool": 0.3}``, from the next user turn
    on, or rates by age, ``{"tool": {0: 0.5, 4: 0.2}}``: half at once, a fifth when four
    user turns have come after. With ``every``, ages count the model's calls instead, in blocks of
    so many: for agents, which use many tools in one user turn. Messages that ask for tools stay as
    they are, ids too; a tool's JSON stays JSON with all its records (``json`` says otherwise by
    key), its logs are folded (not with ``fold=False``). ``tools`` is the rate for the descriptions
    in tool schemas.

    With ``stable``, the default but for ``target_tokens``, a message is compressed alone, without
    the question, so that it becomes the same bytes whatever follows, and an engine's prefix cache
    goes on working: a new turn changes nothing before the user turn that was the last one until
    then. What that costs: a turn that has just become old is read once more; old turns are cut
    without knowing the question; and each pays for itself, so what must stay whole in one is not
    taken from another, and all together may pass the rate. Documents stand behind the chat, share
    one budget and are cut for the question in any case. Without ``stable``, so are the turns.

    ``compressor`` is what ``headrace.compress`` takes; ``tokenizer`` is what tokens are counted
    with (the engine's own, so that the budget is what the engine sees); text that matches a
    ``keep`` pattern stays. The report says which scorer read how many texts, and why.

    With ``when="pays"`` and an engine's ``cost`` (``cost.predictor_of``), texts are compressed only
    if the prefill that this saves is predicted to take longer than compressing them; without a
    ``cost``, as ever, and the report says so. Answers that pass through correct the prediction,
    and the report has it next to what the engine took.
    """

    name: ClassVar[str] = "compress"
    rate: float | None = None
    target_tokens: int | None = None
    threshold: float | None = None
    quality: float | None = None
    compressor: str = "auto"
    tokenizer: str | None = None
    keep: tuple[str | re.Pattern[str], ...] = ()
    last_user: Literal["keep", "context"] = "keep"
    on_error: Literal["pass", "raise"] = "pass"
    rates: Rates = field(default_factory=dict[str, float], hash=False)
    every: int | None = None
    stable: bool | None = None
    tools: float | None = None
    json: JsonPolicy | None = field(default=None, hash=False)
    fold: bool = True
    when: Literal["always", "pays"] = "always"
    cost: Predictor | None = field(default=None, hash=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        parts.one_of("when", self.when, ("always", "pays"))
        if self.every is not None and (type(self.every) is not int or self.every < 1):
            raise InvalidRequest(f"every is a number of calls, 1 or more, got {self.every!r:.40}")
        check_keep(self.keep)
        parts.check_compressor(self.compressor)
        parts.check_tokenizer(self.tokenizer)
        parts.one_of("last_user", self.last_user, ("keep", "context"))
        parts.one_of("on_error", self.on_error, ("pass", "raise"))
        parts.one_of("fold", self.fold, (True, False))
        if not isinstance(self.json, JsonPolicy | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidRequest(f"json is a JsonPolicy, got {self.json!r:.60}")
        _ = self.budget, self._rates, self._tools  # wrong ones are said here, not at a request
        if not self.keep:
            check_leaves_some(self.budget)

    @cached_property
    def budget(self) -> Budget:
        """The budget as one value."""
        return Budget(self.rate, self.target_tokens, self.threshold, self.quality)

    @property
    def is_stable(self) -> bool:
        """Whether a message becomes the same bytes whatever follows it."""
        return self.target_tokens is None if self.stable is None else self.stable

    @cached_property
    def engine(self) -> Compressor:
        """The scorer and the token counter, loaded when first needed."""
        return Compressor(parts.scorer(self.compressor), parts.counter(self.tokenizer))

    @cached_property
    def _rates(self) -> dict[str, dict[int, Budget]]:
        return checked(self.rates, may_be_zero=bool(self.keep))

    @cached_property
    def _tools(self) -> Budget | None:
        return None if self.tools is None else Budget(rate=self.tools)

    @cached_property
    def _memory(self) -> Memory[_Cut]:
        return Memory(REMEMBERED)

    @cached_property
    def _judge(self) -> Judge | None:
        if self.when == "always" or self.cost is None:
            return None
        return Judge(self.cost, f"{self.name} {self.compressor}")

    async def __call__(
        self, request: Request, call_next: Handler, /
    ) -> AsyncGenerator[Event, None]:
        """Send the shorter request on, and learn from the answer how long the engine took."""
        events = super().__call__(request, call_next)
        if self.cost is not None:
            events = watched(events, self.cost, self.name)
        async with aclosing(events):
            async for event in events:
                yield event

    async def transform(self, request: Request) -> Request:
        """Return the request with fewer tokens."""
        verdict: Verdict | None = None
        if judge := self._judge:
            outlook = await in_thread(self._outlook, request)
            if outlook.cut:
                verdict = await in_thread(judge.decide, outlook)
        started = time.perf_counter()
        is_refused = verdict is not None and not verdict.pays
        results: dict[Slot, _Cut] = {}
        changed, num_gone, num_whole = request, 0, 0
        if not is_refused:
            results = await in_thread(self._cut, request)
            texts = {slot: cut.text for slot, cut in results.items()}
            changed, num_gone, num_whole = put_back(request, texts)
        if self._tools is not None:
            changed = await in_thread(self._with_tools, changed, self._tools)
        count = self.engine.counter.count
        before, after = _num_tokens(request, count), _num_tokens(changed, count)
        reasons = sorted({result.reason for result in results.values() if result.reason})
        is_open = bool(results) or changed.sampling is not request.sampling
        decision = f"{before} -> {after} tokens" if is_open or is_refused else NOTHING
        if verdict is not None:
            decision += f", {verdict.words}"
        elif self.when == "pays" and self.cost is None:
            decision += ", whether it pays is not known: the engine's hardware is not"
        if num_gone:
            decision += f", nothing left of {num_gone} documents"
        is_redone = not self.is_stable and any(at >= 0 for at, _ in results)
        if is_redone:
            decision += f", {REDONE}"
        if num_whole:
            decision += f", {num_whole} texts stay whole: {EMPTIED}"
        others = Counter(
            f"by {cut.scorer}: {cut.because}" for cut in results.values() if cut.because
        )
        decision += "".join(f", {count} texts {said}" for said, count in others.items())
        seconds = time.perf_counter() - started
        if verdict is not None and verdict.pays:
            verdict.learn(seconds, before - after)
        row = StageReport(
            self.name,
            "; ".join([decision, *reasons]),
            seconds,
            before,
            after,
            verdict.spent if verdict is not None and verdict.pays else None,
            details={
                "compressor": self.engine.scorer.name,
                "texts": len(results),
                "scorers": dict(Counter(cut.scorer for cut in results.values())),
                "other_scorers": dict(others),
                "documents_dropped": num_gone,
                "left_whole": num_whole,
                "reasons": reasons,
                "stable": self.is_stable,
                **(verdict.details() if verdict is not None else {}),
            },
        )
        return replace(changed, report=request.report.add(row))

    def _cut(self, request: Request) -> dict[Slot, _Cut]:
        """Return what is left of everything that may be cut, in the order of the prompt."""
        alone, together = self._open(request)
        done = {slot: self._alone(text, budget) for slot, (text, budget) in alone.items()}
        return done | self._together(request, together)

    def _open(
        self, request: Request
    ) -> tuple[dict[Slot, tuple[str, Budget]], dict[Slot, tuple[str, Budget | None]]]:
        """Return what may be cut: messages on their own, and texts that are cut together."""
        count = self.engine.counter.count
        alone: dict[Slot, tuple[str, Budget]] = {}
        together: dict[Slot, tuple[str, Budget | None]] = {}
        for slot, text, budget, is_own in cuttable(request, self._rates, self.budget, self.every):
            if count(text) > SHORT_TURN and self.is_stable:
                alone[slot] = text, budget
            elif count(text) > SHORT_TURN:
                together[slot] = text, budget if is_own else None
        last = last_user(request)
        if self.last_user == "context" and last >= 0:
            for j, part in enumerate(request.messages[last].parts):
                if isinstance(part, Text) and count(part.text) > SHORT_TURN:
                    together[last, j] = part.text, None
        together |= {(-1, i): (one.text, None) for i, one in enumerate(request.documents)}
        return alone, together

    def _outlook(self, request: Request) -> Outlook:
        """Return what compressing a request is expected to read and to cut."""
        alone, together = self._open(request)
        count = self.engine.counter.count
        new = [text for text, budget in alone.values() if _key(text, budget) not in self._memory]
        new += [text for text, _ in together.values()]
        shared = sum(count(text) for text, budget in together.values() if budget is None)
        own = [(count(text), budget) for text, budget in alone.values()]
        own += [(count(text), budget) for text, budget in together.values() if budget is not None]

        def run(text: str) -> None:
            self.engine.compress([text], Budget(rate=0.5), question=request.question)

        return Outlook(
            _num_tokens(request, count),
            sum(tokens - _left(tokens, budget) for tokens, budget in [*own, (shared, self.budget)]),
            sum(map(count, new)),
            "\n".join(new),
            count,
            run,
        )

    def _alone(self, text: str, budget: Budget) -> _Cut:
        """Compress a message so that nothing but itself and the options matter."""

        def cut() -> _Cut:
            (result,) = self.engine.compress(
                [text], budget, keep=self.keep, json=self.json, fold=self.fold
            )
            return _Cut.of(result)

        return self._memory.get(_key(text, budget), cut)

    def _together(
        self, request: Request, texts: dict[Slot, tuple[str, Budget | None]]
    ) -> dict[Slot, _Cut]:
        """Compress texts for the question, those without a budget of their own within one."""
        question, keep = request.question, [*self.keep]
        if self.last_user == "context":
            task = _task(request)
            keep += [re.compile(re.escape(line)) for line in task]
            question = " ".join(filter(ASKS.search, task)) or (task[-1] if task else question)
        formats = [_file_name(request.documents[at]) if place < 0 else None for place, at in texts]
        results: list[Compressed] = self.engine.compress(
            [text for text, _ in texts.values()],
            self.budget,
            question=question,
            keep=keep,
            formats=formats,
            titles=[request.documents[at].title if place < 0 else "" for place, at in texts],
            joint=True,
            budgets=[budget for _, budget in texts.values()],
            json=self.json,
            fold=self.fold,
        )
        return {slot: _Cut.of(result) for slot, result in zip(texts, results, strict=True)}

    def _with_tools(self, request: Request, budget: Budget) -> Request:
        """Return the request with shorter descriptions in its tools, whatever is asked."""
        extra = request.sampling.extra
        if not isinstance(tools := extra.get("tools"), (list, tuple)) or not tools:
            return request
        short = compress_tools(
            cast("Sequence[Mapping[str, Any]]", tools),
            budget,
            scorer=self.engine.scorer,
            counter=self.engine.counter,
        )
        sampling = replace(request.sampling, extra={**extra, "tools": short})
        return replace(request, sampling=sampling)


def _key(text: str, budget: Budget) -> str:
    return f"{budget!r}\n{text}"


def _left(tokens: int, budget: Budget) -> int:
    """Return how many tokens a budget leaves: half, until it is known, where scores decide."""
    limit = budget.limit(tokens)
    return tokens // 2 if limit is None else min(limit, tokens)


def _file_name(document: Document) -> str | None:
    """Return the name that says what a document's text is (data.csv), if it has one."""
    for name in (document.metadata.get("source"), document.title):
        if isinstance(name, str) and FILE_NAME.fullmatch(name):
            return name
    return None


def _task(request: Request) -> list[str]:
    """Return what of the last user turn is the task itself: its ends, and whatever asks."""
    asked = next((m.text for m in reversed(request.messages) if m.role == "user"), "")
    if request.question and request.question != asked:
        return [request.question]
    pieces = [piece.strip() for piece in SENTENCE_END.split(asked) if piece.strip()]
    ends = {0, len(pieces) - 1} if pieces else set[int]()
    at = sorted(ends | {i for i, piece in enumerate(pieces) if ASKS.search(piece)})
    return [pieces[i] for i in at]


def _num_tokens(request: Request, count: Callable[[str], int]) -> int:
    texts = [m.text for m in request.messages] + [d.text for d in request.documents]
    if tools := request.sampling.extra.get("tools"):
        texts.append(json.dumps(tools, ensure_ascii=False, default=str))
    return sum(count(text) for text in texts)
