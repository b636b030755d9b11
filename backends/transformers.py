"""transformers in this process: our own batched decode loop, off the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, get_args

from ..middleware.errors import BackendError, HeadraceError
from ..middleware.types import ConstraintKind, Event
from .base import Capabilities, Job
from .decoding.engine import Engine, Entry
from .decoding.loop import Loop
from .decoding.prefixes import PrefixStore
from .decoding.row import Row
from .generate_options import GenerateOptions, check_load
from .generating import Generating
from .local import LocalModel
from .paged import Paged

Outcome = tuple[int, Event | HeadraceError]

DEFAULT_MAX_TOKENS = 512
_COMPILE_SECONDS = 0.05  # that a batch waits for all its constraints; nearly all take 2 ms


class TransformersBackend:
    """A model in process.

    ``model`` is an embedded name ("smollm2"), a folder, or a name on Hugging Face's hub, loaded
    at the first use. ``device`` defaults to the GPU when there is one, ``dtype`` (a name such as
    "float32") to bfloat16 there and float32 on a CPU. ``max_batch`` answers are written in one
    forward pass; ``max_tokens`` limits an answer whose request sets no limit.

    Greedy unless a request sets a temperature. Constraints are enforced while decoding;
    ``fast_forward`` reads the tokens they force, and guesses at those that are likely, together
    with others in one pass. It changes the speed and not the text. Prompts that begin alike are
    read once while they fit into ``prefix_cache_mb`` (0: never). ``prompt_lookup`` tokens are
    guessed from the prompt where the answer repeats it (0: none); it pays where answers copy.

    ``load`` are options of ``from_pretrained`` (``quantization_config``, ``device_map``,
    ``attn_implementation``); checkpoints that are quantised (GPTQ, AWQ, bitsandbytes) are loaded as
    they are. ``generate`` leaves our loop for transformers' own generation, in batches that
    nobody joins, for what the loop has not: an assistant's drafts, other caches, compilation,
    paged batching (docs/in-process.md). Raises InvalidRequest for options that there are not.
    """

    def __init__(
        self,
        model: str = "smollm2",
        *,
        device: str | None = None,
        dtype: str | None = None,
        max_batch: int = 8,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        fast_forward: bool = True,
        prefix_cache_mb: int = 256,
        prompt_lookup: int = 0,
        generate: Mapping[str, Any] | None = None,
        load: Mapping[str, Any] | None = None,
    ) -> None:
        self._name = model
        self._device = device
        self._dtype = dtype
        self._max_batch = max_batch
        self._max_tokens = max_tokens
        self._fast_forward = fast_forward
        self._prompt_lookup = prompt_lookup
        self._options = GenerateOptions.of(generate) if generate else None
        self._load_options = check_load(load or {})
        keeps = prefix_cache_mb > 0 and self._options is None
        self._prefixes = PrefixStore(prefix_cache_mb * 2**20) if keeps else None
        self._local: LocalModel | None = None
        self._assistant: LocalModel | None = None
        self._is_closed = False
        # One thread for the backend's life: each new one would start its own pool of cores.
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="headrace-transformers")
        self._engine = self._make_engine()

    def _make_engine(self) -> Engine | Generating:
        executor, most = self._executor, self._max_batch
        if self._options is None:
            return Engine(executor, self._open_loop, self._row, _failed, most)
        kind = Generating if self._options.continuous is None else Paged
        return kind(
            executor, self._load, self._load_assistant, self._row, _failed, self._options, most
        )

    async def capabilities(self) -> Capabilities:
        """Return what the model can do; loads it the first time."""
        local = self._local
        if local is None:
            self._check_open()
            local = await asyncio.get_running_loop().run_in_executor(self._executor, self._load)
        return Capabilities(
            name="transformers",
            model=self._name,
            max_batch=1 if self._options is not None and self._options.drafts else self._max_batch,
            max_concurrency=1,
            is_continuous=self._options is None,
            has_prefix_cache=self._prefixes is not None,
            constraints=frozenset[ConstraintKind]()
            if isinstance(self._engine, Paged)
            else frozenset(get_args(ConstraintKind)),
            context_length=local.context_length,
            tokenizer=str(local.folder),
            can_prefill=True,
        )

    async def generate(self, batch: Sequence[Job]) -> AsyncGenerator[Outcome, None]:
        """Answer the jobs together with whatever else is being answered; see ``Backend.generate``.

        Text that a row has given out is never taken back. An answer that reaches its limit of
        tokens finishes with "length", also under a constraint.
        """
        self._check_open()
        loop = asyncio.get_running_loop()
        outcomes: asyncio.Queue[tuple[int, Event | HeadraceError | None]] = asyncio.Queue()

        def entry(index: int, job: Job) -> Entry:
            def tell(what: Event | HeadraceError | None) -> None:
                try:
                    loop.call_soon_threadsafe(outcomes.put_nowait, (index, what))
                except RuntimeError:  # the event loop is gone, and everybody who waited with it
                    made.is_dropped = True

            made = Entry(job, tell)
            return made

        entries = [entry(index, job) for index, job in enumerate(batch)]
        compiling = await self._submit(entries)
        try:
            num_open = len(entries)
            while num_open:
                index, what = await outcomes.get()
                if what is None:
                    num_open -= 1
                else:
                    yield index, what
        finally:
            for made in entries:
                made.is_dropped = True
            for task in compiling:
                task.cancel()

    async def _submit(self, entries: Sequence[Entry]) -> list[asyncio.Task[None]]:
        """Hand the entries over, each when its constraint is compiled: none waits for another's.

        Returns the tasks that still compile.
        """
        local = self._local

        async def compile_first(entry: Entry) -> None:
            constraint = entry.job.request.constraint
            if local is not None and constraint is not None:
                with suppress(Exception):  # its row will raise the same
                    await asyncio.to_thread(local.compiler.matcher, constraint)

        async def follow(task: asyncio.Task[None], entry: Entry) -> None:
            await asyncio.wait([task])
            self._engine.submit([entry])

        compiled = {asyncio.create_task(compile_first(entry)): entry for entry in entries}
        try:
            _, late = await asyncio.wait(compiled, timeout=_COMPILE_SECONDS)
        except asyncio.CancelledError:
            for task in compiled:
                task.cancel()
            raise
        self._engine.submit([entry for task, entry in compiled.items() if task not in late])
        return [asyncio.create_task(follow(task, compiled[task])) for task in late]

    async def close(self) -> None:
        """Free the model once the work in hand has stopped. Idempotent."""
        if not self._is_closed:
            self._is_closed = True
            self._executor.submit(self._free)
            self._executor.shutdown(wait=False)

    def _check_open(self) -> None:
        if self._is_closed:
            raise BackendError(f"the backend of {self._name!r} is closed; make a new one")

    # Everything below runs in the executor's only thread.

    def _load(self) -> LocalModel:
        if self._local is None:
            options = self._load_options
            self._local = LocalModel.load(self._name, self._device, self._dtype, options)
        return self._local

    def _load_assistant(self, name: str) -> LocalModel:
        if self._assistant is None:
            self._assistant = LocalModel.load(name, self._device, self._dtype)
        return self._assistant

    def _free(self) -> None:
        self._local = self._assistant = self._prefixes = None

    def _open_loop(self) -> Loop:
        return Loop(self._load().model, self._prefixes)

    def _row(self, entry: Entry, key: int) -> Row:
        return self._load().row(
            key,
            entry.job.request,
            self._max_tokens,
            fast_forward=self._fast_forward and self._options is None,
            prompt_lookup=self._prompt_lookup if self._options is None else 0,
        )


def _failed(error: BaseException) -> BackendError:
    import torch

    reason = (str(error).strip().splitlines() or [""])[0]
    if isinstance(error, torch.OutOfMemoryError):
        return BackendError(
            f"the batch does not fit into the GPU's memory ({reason:.120}); lower max_batch",
            retryable=True,
        )
    return BackendError(f"the model failed: {type(error).__name__}: {reason:.200}")
