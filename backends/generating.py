"""transformers' own generate() as an engine, for what our loop cannot do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from ..middleware.errors import BackendError, HeadraceError
from .decoding.automaton import Matcher, apply_mask, unpack
from .decoding.engine import Entry, told
from .decoding.row import Row
from .generate_options import GenerateOptions

if TYPE_CHECKING:
    import torch

    from .local import LocalModel

_REMEMBERED = 64  # states of an automaton: more than a draft has tokens


@dataclass(slots=True, eq=False)
class Task:
    """An entry and its row."""

    entry: Entry
    row: Row

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be written."""
        return self.row.finish_reason is not None or self.entry.is_over or not self.entry.is_wanted

    def act(self, take: Callable[[], str]) -> None:
        """Let the row take tokens and tell what follows from them."""
        try:
            told(self.entry, self.row, take())
        except HeadraceError as error:
            self.entry.end(error)

    def close(self, cause: str) -> None:
        """End what generation left open: silently when unwanted, else with an error."""
        if not self.entry.is_wanted:
            self.entry.end()
        elif not self.entry.is_over:
            self.entry.end(
                BackendError(
                    f"transformers stopped after {len(self.row.tokens)} tokens though the answer"
                    f" had not ended ({cause}); leave these options out or choose others"
                )
            )


class Generating:
    """Answers batches with ``model.generate``; has the face of ``decoding.engine.Engine``.

    A batch is padded on the left and done when its longest row is. A row's sampling, constraint
    and stop strings are ours: they work on generate's logits, so that every row keeps to its own
    request. With drafts (an assistant, early exit, prompt lookup) rows are written one
    at a time. An answer that generate leaves open is an error, never an answer.
    """

    def __init__(
        self,
        executor: Executor,
        load: Callable[[], LocalModel],
        load_assistant: Callable[[str], LocalModel],
        make_row: Callable[[Entry, int], Row],
        explain: Callable[[BaseException], HeadraceError],
        options: GenerateOptions,
        max_rows: int,
    ) -> None:
        self._executor = executor
        self._load = load
        self._load_assistant = load_assistant
        self._make_row = make_row
        self._explain = explain
        self.options = options
        self._max_rows = 1 if options.drafts else max_rows

    def submit(self, entries: Sequence[Entry]) -> None:
        """Queue a batch; its entries are told what happens."""
        if not entries:
            return
        try:
            self._executor.submit(self._run, entries)
        except RuntimeError:  # it was closed meanwhile
            error = BackendError("the backend was closed while the request waited")
            for entry in entries:
                entry.end(error)

    # Everything below runs in the executor's only thread.

    def _run(self, entries: Sequence[Entry]) -> None:
        try:
            local = self._load()
            tasks = [task for entry in entries for task in self._tasks(entry)]
            for at in range(0, len(tasks), self._max_rows):
                some = tasks[at : at + self._max_rows]
                if live := [task for task in some if not task.is_over]:
                    self.answer(local, live)
                for task in some:
                    task.close(self.options.words)
        except BaseException as error:
            failure = error if isinstance(error, HeadraceError) else self._explain(error)
            for entry in entries:
                entry.end(failure)
            if not isinstance(error, Exception):
                raise

    def _tasks(self, entry: Entry) -> list[Task]:
        if not entry.is_wanted:
            entry.end()
            return []
        try:
            self.check(entry)
            task = Task(entry, self._make_row(entry, 0))
            task.act(task.row.start)
        except Exception as error:
            entry.end(error if isinstance(error, HeadraceError) else self._explain(error))
            return []
        return [] if task.is_over else [task]

    def check(self, entry: Entry) -> None:
        """Raise what speaks against a request; nothing here."""

    def answer(self, local: LocalModel, tasks: Sequence[Task]) -> None:
        """Write the answers of rows together."""
        import torch

        ids, mask = padded([task.row.prompt for task in tasks], min(local.eos, default=0))
        device = local.model.device
        watch = _Watch(tasks, ids.shape[1], follows=self.options.drafts)
        processor = _ByPrefix(tasks[0].row, ids.shape[1]) if self.options.drafts else _choose(tasks)
        with torch.inference_mode():
            local.model.generate(
                input_ids=ids.to(device),
                attention_mask=mask.to(device),
                do_sample=False,
                num_beams=1,
                repetition_penalty=1.0,  # a model's own would change what is greedy
                max_new_tokens=max(task.row.max_tokens for task in tasks),
                pad_token_id=min(local.eos, default=0),
                eos_token_id=sorted(local.eos) or None,
                logits_processor=[processor],
                stopping_criteria=[watch],
                **self._arguments(local),
            )

    def _arguments(self, local: LocalModel) -> dict[str, Any]:
        options = self.options
        found: dict[str, Any] = dict(options.plain)
        if options.compiles:
            from transformers import CompileConfig

            config: Any = CompileConfig()
            config._compile_all_devices = True  # generate compiles on GPUs alone without it
            found["compile_config"] = config
        if options.assistant is not None:
            assistant = self._load_assistant(options.assistant)
            found["assistant_model"] = assistant.model
            if assistant.vocabulary_size != local.vocabulary_size:
                found["tokenizer"] = local.tokenizer
                found["assistant_tokenizer"] = assistant.tokenizer
        return found


def padded(prompts: Sequence[Sequence[int]], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ids and mask, [prompts, longest], the shorter ones padded on the left."""
    import torch

    width = max(map(len, prompts))
    ids = [[*[pad] * (width - len(prompt)), *prompt] for prompt in prompts]
    mask = [[*[0] * (width - len(prompt)), *[1] * len(prompt)] for prompt in prompts]
    return torch.tensor(ids), torch.tensor(mask)


def _choose(tasks: Sequence[Task]) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Return a logits processor in which each row takes its own token, and leaves no other."""

    def process(ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        import torch

        chosen = torch.full_like(logits, float("-inf"))
        for place, task in enumerate(tasks):
            if not task.is_over:
                task.act(partial(task.row.take, logits[place : place + 1]))
            chosen[place, task.row.tokens[-1] if task.row.tokens else 0] = 0.0
        return chosen

    return process


class _ByPrefix:
    """A logits processor for one row whose future is guessed: a state for every prefix.

    The constraint's state after a guess is made from the longest known prefix. Behind a guess
    that the constraint forbids nothing is checked: those positions are never used.
    """

    def __init__(self, row: Row, prompt_length: int) -> None:
        self._row = row
        self._prompt_length = prompt_length
        self._known: dict[tuple[int, ...], Matcher] = {}
        if row.matcher is not None:
            self._known[()] = row.matcher.copy()

    def __call__(self, ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """Return the logits of the tokens that may follow, of the drawn one where rows sample."""
        import torch

        row, masked = self._row, logits[0]
        if row.matcher is not None:
            matcher = self._at(tuple(cast("Any", ids[0, self._prompt_length :]).tolist()))
            if matcher is None or matcher.is_finished:
                return logits.clone()
            masked = apply_mask(matcher.mask(), masked)
        if row.sampler.is_greedy:
            return masked[None].clone()  # it is written back over what it came from
        chosen = torch.full_like(masked, float("-inf"))
        chosen[row.sampler.pick(masked)] = 0.0
        return chosen[None]

    def _at(self, answer: tuple[int, ...]) -> Matcher | None:
        length = next(n for n in range(len(answer), -1, -1) if answer[:n] in self._known)
        matcher = self._known[answer[:length]]
        for place in range(length, len(answer)):
            token = answer[place]
            if matcher.is_finished or not unpack(matcher.mask(), token + 1)[token]:
                return None
            matcher = matcher.copy()
            matcher.advance(token)
            self._known[answer[: place + 1]] = matcher
            if len(self._known) > _REMEMBERED:
                del self._known[next(key for key in self._known if key)]
        return matcher


class _Watch:
    """A stopping criterion a row: done, cancelled, or failed. ``follows``: rows take its tokens."""

    def __init__(self, tasks: Sequence[Task], prompt_length: int, *, follows: bool) -> None:
        self._tasks = tasks
        self._read = prompt_length
        self._follows = follows

    def __call__(self, ids: torch.Tensor, scores: Any, **_: Any) -> torch.Tensor:
        """Return for each row whether to stop."""
        import torch

        read = ids[:, self._read :] if self._follows else ids[:0]
        new = cast("list[list[int]]", cast("Any", read).tolist())
        self._read = ids.shape[1]
        for task, tokens in zip(self._tasks, new, strict=False):
            if not task.is_over:
                task.act(partial(task.row.follow, tokens))
        return torch.tensor([task.is_over for task in self._tasks], device=ids.device)
