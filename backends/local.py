"""A language model in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from ..middleware.errors import BackendError, InvalidRequest, ModelUnavailable
from ..middleware.models import resolve, silent_transformers
from ..middleware.types import Constraint, Request
from .chat import prompt_tokens
from .decoding.automaton import Compiler
from .decoding.closing import Closing, ClosingOrder
from .decoding.guessing import Guesser
from .decoding.lookup import Lookup
from .decoding.row import Row
from .decoding.sampling import Sampler
from .decoding.stream import Detokenizer, StopFilter

# Fields of OpenAI's chat API that change nothing about the text.
_WITHOUT_EFFECT = frozenset(
    {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"}
    | {"stream_options", "parallel_tool_calls"}
)
_LOADING = (OSError, ValueError, KeyError, AttributeError, RuntimeError, TypeError)
# Fields that change nothing at these values.
_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logprobs": (False,),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
}


@dataclass(frozen=True)
class LocalModel:
    """A model, its tokenizer, and what is known about both.

    ``eos`` are the ids that end an answer; ``context_length`` is in tokens, prompt and answer
    together, None when the model does not say.
    """

    name: str
    folder: Path
    model: Any
    tokenizer: Any
    eos: frozenset[int]
    context_length: int | None

    @classmethod
    def load(
        cls,
        name: str,
        device: str | None,
        dtype: str | None,
        options: Mapping[str, Any] | None = None,
    ) -> LocalModel:
        """Load a model: on a GPU in bfloat16 when there is one, else on the CPU in float32.

        ``options`` go to ``from_pretrained``. What is quantised, or placed by a ``device_map``,
        stays where it was put.

        Raises ModelUnavailable when it is not found or not loadable.
        """
        folder = resolve(name, kind="decoder")
        import torch
        import transformers

        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        dtype = dtype or ("bfloat16" if device.startswith("cuda") else "float32")
        auto: Any = transformers
        try:
            with silent_transformers():
                tokenizer = auto.AutoTokenizer.from_pretrained(folder, local_files_only=True)
                model = auto.AutoModelForCausalLM.from_pretrained(
                    folder,
                    dtype=getattr(torch, dtype),
                    use_safetensors=True,
                    local_files_only=True,
                    **(options or {}),
                )
            is_placed = getattr(model, "is_quantized", False) or "device_map" in (options or {})
            model = (model if is_placed else model.to(device)).eval()
        except (*_LOADING, ImportError) as error:
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise ModelUnavailable(
                f"cannot load {name!r} from {folder} onto {device} as {dtype}: {reason[0]:.200}"
            ) from error
        config = model.config.get_text_config()
        eos = {tokenizer.eos_token_id, *_listed(model.generation_config.eos_token_id)} - {None}
        context = getattr(config, "max_position_embeddings", None)
        return cls(name, folder, model, tokenizer, frozenset(eos), context)

    @property
    def vocabulary_size(self) -> int:
        """How many tokens the model knows, padding of the vocabulary included."""
        return int(self.model.config.get_text_config().vocab_size)

    @cached_property
    def compiler(self) -> Compiler:
        """The compiler of constraints for this tokenizer; costs half a second the first time."""
        return Compiler(
            self.tokenizer, self.model.get_output_embeddings().out_features, sorted(self.eos)
        )

    @cached_property
    def closing_order(self) -> ClosingOrder:
        """The vocabulary in the order in which tokens close; costs 0.3 s the first time."""
        return ClosingOrder(self.compiler.width, self.compiler.bytes_of)

    def row(
        self,
        key: int,
        request: Request,
        max_tokens: int,
        *,
        fast_forward: bool = True,
        prompt_lookup: int = 0,
    ) -> Row:
        """Return the row that answers a request, of ``max_tokens`` unless the request says.

        Raises InvalidRequest, UnsupportedConstraint, and BackendError for a prompt that is too
        long.
        """
        sampling = request.sampling
        _check_extra(sampling.extra)
        prompt = prompt_tokens(self.tokenizer, request.messages)
        room = self._room(len(prompt))
        wanted = sampling.max_tokens or max_tokens
        constraint = request.constraint
        matcher = self.compiler.matcher(constraint) if constraint else None
        return Row(
            key=key,
            prompt=prompt,
            max_tokens=wanted if room is None else min(wanted, room),
            eos=self.eos,
            sampler=Sampler(sampling),
            detokenizer=Detokenizer(self.decode, self._bytes_of),
            stop=StopFilter(sampling.stop),
            matcher=matcher,
            guesser=self._guesser(constraint) if fast_forward else None,
            closing=self._closing(constraint) if constraint is not None else None,
            lookup=Lookup(prompt_lookup) if prompt_lookup > 0 else None,
            runs_ahead=fast_forward,
        )

    def decode(self, tokens: Sequence[int]) -> str:
        """Return the text of tokens, special ones left out."""
        text = self.tokenizer.decode(
            tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return cast("str", text)

    def _bytes_of(self, token: int) -> bytes:
        return self.compiler.bytes_of(token)

    def _closing(self, constraint: Constraint) -> Closing | None:
        is_json = constraint.kind == "json_schema"
        return Closing(self.closing_order, self.eos, is_json) if self.eos else None

    def _guesser(self, constraint: Constraint | None) -> Guesser | None:
        compact = self.compiler.compact(constraint) if constraint else None
        return Guesser(compact, self.compiler.tokens_of) if compact is not None else None

    def _room(self, prompt: int) -> int | None:
        if self.context_length is None:
            return None
        if prompt >= self.context_length:
            raise BackendError(
                f"the prompt has {prompt} tokens, but {self.name} holds {self.context_length}"
                " together with the answer; shorten it (Compress does) or choose another model"
            )
        return self.context_length - prompt


def _listed(ids: int | list[int] | None) -> list[int]:
    return ids if isinstance(ids, list) else [] if ids is None else [ids]


def _check_extra(extra: Any) -> None:
    for name, value in extra.items():
        if value is None or name in _WITHOUT_EFFECT or value in _NEUTRAL.get(name, ()):
            continue
        raise InvalidRequest(
            f"the in-process engine cannot do {name}={value!r:.60}; leave it out, or use a server"
        )
