"""transformers in this process: our own batched decode loop, off the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from ..middleware.errors import BackendError, HeadraceError
from ..middleware.types import Event, Finished, Response, TextDelta
from .base import Capabilities, Job
from .decoding.loop import decode
from .decoding.row import Row
from .local import LocalModel

Outcome = tuple[int, Event | HeadraceError]

DEFAULT_MAX_TOKENS = 512


class TransformersBackend:
    """A model in process.

    ``model`` is an embedded name ("smollm2"), a folder, or a name on Hugging Face's hub, loaded
    at the first use. ``device`` defaults to the GPU when there is one, ``dtype`` (a name such as
    "float32") to bfloat16 there and float32 on a CPU. ``max_batch`` answers are written in one
    forward pass; ``max_tokens`` limits an answer whose request sets no limit.

    Greedy unless a request sets a temperature. Constraints are enforced while decoding.
    """

    def __init__(
        self,
        model: str = "smollm2",
        *,
        device: str | None = None,
        dtype: str | None = None,
        max_batch: int = 8,
        max_tokens: int = DEFAULT_MAX_TOKENS,
    ) -> None:
        self._name = model
        self._device = device
        self._dtype = dtype
        self._max_batch = max_batch
        self._max_tokens = max_tokens
        self._local: LocalModel | None = None
        self._is_closed = False
        # One thread for the backend's life: each new one would start its own pool of cores.
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="headrace-transformers")

    async def capabilities(self) -> Capabilities:
        """Return what the model can do; loads it the first time."""
        local = self._local
        if local is None:
            self._check_open()
            local = await asyncio.get_running_loop().run_in_executor(self._executor, self._load)
        return Capabilities(
            name="transformers",
            model=self._name,
            max_batch=self._max_batch,
            max_concurrency=1,
            constraints=frozenset({"json_schema", "regex", "choice"}),
            context_length=local.context_length,
            tokenizer=str(local.folder),
            can_prefill=True,
        )

    async def generate(self, batch: Sequence[Job]) -> AsyncGenerator[Outcome, None]:
        """Answer the jobs together; see ``Backend.generate``.

        Text that a row has given out is never taken back. An answer that reaches its limit of
        tokens finishes with "length", also under a constraint.
        """
        self._check_open()
        loop = asyncio.get_running_loop()
        outcomes: asyncio.Queue[Outcome | None] = asyncio.Queue()
        stop = threading.Event()

        def emit(outcome: Outcome | None) -> None:
            try:
                loop.call_soon_threadsafe(outcomes.put_nowait, outcome)
            except RuntimeError:  # the event loop is gone, and everybody who waited with it
                stop.set()

        work = self._executor.submit(self._work, list(batch), emit, stop)
        try:
            while (outcome := await outcomes.get()) is not None:
                yield outcome
        finally:
            stop.set()
            work.cancel()

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
            self._local = LocalModel.load(self._name, self._device, self._dtype)
        return self._local

    def _free(self) -> None:
        self._local = None

    def _work(
        self,
        batch: list[Job],
        emit: Callable[[Outcome | None], None],
        stop: threading.Event,
    ) -> None:
        """Answer the batch, ``max_batch`` jobs at a time, and say None at the end."""
        open_jobs = dict(enumerate(batch))

        def end(key: int, outcome: Event | HeadraceError) -> None:
            if open_jobs.pop(key, None):
                emit((key, outcome))

        try:
            local = self._load()
            for start in range(0, len(batch), self._max_batch):
                keys = range(start, min(start + self._max_batch, len(batch)))
                rows = self._rows(local, {key: batch[key] for key in keys}, end)
                self._decode(local, rows, batch, emit, end, stop)
        except Exception as error:
            for key in list(open_jobs):
                if not batch[key].cancelled:
                    end(key, error if isinstance(error, HeadraceError) else _failed(error))
        finally:
            emit(None)

    def _rows(
        self,
        local: LocalModel,
        jobs: dict[int, Job],
        end: Callable[[int, Event | HeadraceError], None],
    ) -> list[Row]:
        rows: list[Row] = []
        for key, job in jobs.items():
            try:
                rows.append(local.row(key, job.request, self._max_tokens))
            except HeadraceError as error:
                end(key, error)
        return rows

    def _decode(
        self,
        local: LocalModel,
        rows: list[Row],
        batch: list[Job],
        emit: Callable[[Outcome | None], None],
        end: Callable[[int, Event | HeadraceError], None],
        stop: threading.Event,
    ) -> None:
        import torch

        def is_wanted(row: Row) -> bool:
            return not stop.is_set() and not batch[row.key].cancelled

        with torch.inference_mode():
            for row, news in decode(local.model, rows, is_wanted):
                if isinstance(news, HeadraceError):
                    end(row.key, news)
                    continue
                if news:
                    emit((row.key, TextDelta(news)))
                if row.finish_reason:
                    response = Response(row.text, finish_reason=row.finish_reason, usage=row.usage)
                    end(row.key, Finished(response))


def _failed(error: Exception) -> BackendError:
    import torch

    reason = (str(error).strip().splitlines() or [""])[0]
    if isinstance(error, torch.OutOfMemoryError):
        return BackendError(
            f"the batch does not fit into the GPU's memory ({reason:.120}); lower max_batch",
            retryable=True,
        )
    return BackendError(f"the model failed: {type(error).__name__}: {reason:.200}")
