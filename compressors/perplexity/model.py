"""Loading a causal language model: the only place that meets transformers."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from inspect import signature
from pathlib import Path
from typing import Any, cast

from ...middleware.errors import InvalidRequest, ModelUnavailable
from ...middleware.models import resolve, silent_transformers
from ..tokens import load_tokenizer, replace_surrogates
from ..units import Units
from .encoded import Encoded

DTYPES = ("float32", "bfloat16", "float16")
_ATTENTION = frozenset(("full_attention", "sliding_attention", "chunked_attention"))


@dataclass(frozen=True)
class CausalModel:
    """A causal language model in eval mode and its tokenizer.

    ``start`` are the ids before any text: what the tokenizer puts there itself, else the model's
    first special token, so that the first word of a text has a probability too.
    ``num_positions`` is how many tokens the model can see at once.
    """

    name: str
    model: Any
    tokenizer: Any
    start: tuple[int, ...]
    num_positions: int

    @cached_property
    def cache_name(self) -> str:
        """Name of the argument that takes the cache: another one before transformers 5.24."""
        names = signature(self.model.forward).parameters
        return "cache" if "cache" in names else "past_key_values"

    def encode(self, texts: list[Units]) -> list[Encoded]:
        """Return the texts' tokens and whose they are; special tokens in a text are text."""
        return [
            Encoded.of(units, encoding.ids, encoding.offsets)
            for units, encoding in zip(texts, self._encode([u.text for u in texts]), strict=True)
        ]

    def ids(self, text: str) -> list[int]:
        """Return a text's tokens without special ones."""
        [encoding] = self._encode([text])
        return [*encoding.ids]

    def _encode(self, texts: list[str]) -> list[Any]:
        clean = [replace_surrogates(text) for text in texts]
        encoded: list[Any] = self.tokenizer.encode_batch(clean, add_special_tokens=False)
        return encoded


def load(name: str, device: str | None = None, dtype: str | None = None) -> CausalModel:
    """Return a model, loaded once a process for all who name it alike.

    Raises ModelUnavailable when it is not found or not loadable, InvalidRequest when it has no
    keys and values that could be kept.
    """
    return _load(name, resolve(name, kind="decoder"), device, dtype)


@lru_cache(maxsize=2)
def _load(name: str, folder: Path, device: str | None, dtype: str | None) -> CausalModel:
    import torch
    import transformers

    device = device or _best_device()
    dtype = dtype or ("bfloat16" if device.startswith("cuda") else "float32")
    auto = cast("Any", transformers.AutoModelForCausalLM)
    try:
        with silent_transformers():
            model = auto.from_pretrained(
                folder, dtype=getattr(torch, dtype), use_safetensors=True, local_files_only=True
            )
        model = model.to(device).eval()
    except (OSError, ValueError, KeyError, AttributeError, RuntimeError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise ModelUnavailable(
            f"cannot load {name!r} from {folder} onto {device} as {dtype}: {reason[0]:.200}"
        ) from error
    config = model.config.get_text_config()
    if others := set(getattr(config, "layer_types", None) or ()) - _ATTENTION:
        raise InvalidRequest(
            f"{name!r} has layers of kind {', '.join(sorted(others))}, which keep no keys and"
            " values to choose from; choose a model with attention only"
        )
    tokenizer = load_tokenizer(folder)
    tokenizer.encode_special_tokens = True
    positions = int(getattr(config, "max_position_embeddings", None) or 2048)
    return CausalModel(name, model, tokenizer, start_ids(folder, tokenizer), positions)


def start_ids(folder: Path, tokenizer: Any) -> tuple[int, ...]:
    """Return the ids that stand before a text: the tokenizer's own, else its first special one."""
    probe = tokenizer.encode("a", add_special_tokens=True)
    if own := [
        i for i, special in zip(probe.ids, probe.special_tokens_mask, strict=True) if special
    ]:
        return (own[0],)
    path = folder / "tokenizer_config.json"
    names: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    for key in ("bos_token", "eos_token", "pad_token"):
        value = names.get(key)
        token: Any = (
            cast("dict[str, Any]", value).get("content") if isinstance(value, dict) else value
        )
        if isinstance(token, str) and (found := tokenizer.token_to_id(token)) is not None:
            return (int(found),)
    return (0,)


def _best_device() -> str:
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
