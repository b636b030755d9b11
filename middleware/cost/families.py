"""Hugging Face configs, architecture by architecture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ..errors import InvalidRequest
from .shape import ModelShape

Fields = Mapping[str, Any]

_NAMES = {  # where GPT-2's config has names of its own
    "hidden_size": "n_embd",
    "num_hidden_layers": "n_layer",
    "num_attention_heads": "n_head",
    "max_position_embeddings": "n_positions",
}
_NEEDED = ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size")
_WIDE = ("num_key_value_heads", "head_dim")
_EXPERTS = ("num_key_value_heads", "num_experts_per_tok")
_BITS = {"float32": 32, "float16": 16, "bfloat16": 16, "float8_e4m3fn": 8}


@dataclass(frozen=True, slots=True)
class Family:
    """How an architecture differs from Llama.

    ``is_tied``: what transformers assumes where the config does not say. ``qk_norm``: "head" has a
    weight a dimension of a head, "all" one a dimension of all heads.
    """

    is_tied: bool = False
    is_gated: bool = True
    bias: Callable[[Fields], tuple[bool, bool, bool]] = lambda _: (False, False, False)
    num_norms: int = 2
    has_norm_bias: bool = False
    qk_norm: str = ""
    has_positions: bool = False
    every: int = 0  # every so manieth layer sees everything, the others a window
    needs: tuple[str, ...] = ("num_key_value_heads",)  # what cannot be derived from other fields


def _llama_bias(config: Fields) -> tuple[bool, bool, bool]:
    attention = bool(config.get("attention_bias"))
    return attention, attention, bool(config.get("mlp_bias"))


def _attention_bias(config: Fields) -> tuple[bool, bool, bool]:
    attention = bool(config.get("attention_bias"))
    return attention, attention, False


def _qwen2_bias(_: Fields) -> tuple[bool, bool, bool]:
    return True, False, False


def _all_bias(_: Fields) -> tuple[bool, bool, bool]:
    return True, True, True


FAMILIES = {
    "llama": Family(bias=_llama_bias, needs=()),
    "granite": Family(bias=_llama_bias),
    "smollm3": Family(is_tied=True, bias=_llama_bias),
    "mistral": Family(),
    "mixtral": Family(needs=(*_EXPERTS, "num_local_experts")),
    "phi3": Family(),
    "qwen2": Family(bias=_qwen2_bias),
    "qwen3": Family(bias=_attention_bias, qk_norm="head", needs=_WIDE),
    "qwen3_moe": Family(
        bias=_attention_bias,
        qk_norm="head",
        needs=(*_EXPERTS, "head_dim", "num_experts", "moe_intermediate_size"),
    ),
    "olmo2": Family(bias=_attention_bias, qk_norm="all"),
    "gemma": Family(is_tied=True, bias=_attention_bias, needs=_WIDE),
    "gemma2": Family(
        is_tied=True, bias=_attention_bias, num_norms=4, every=2, needs=(*_WIDE, "sliding_window")
    ),
    "gemma3_text": Family(
        is_tied=True,
        bias=_attention_bias,
        num_norms=4,
        qk_norm="head",
        every=6,
        needs=(*_WIDE, "sliding_window"),
    ),
    "gpt2": Family(
        is_tied=True,
        is_gated=False,
        bias=_all_bias,
        has_norm_bias=True,
        has_positions=True,
        needs=(),
    ),
}


def from_config(config: Fields, name: str = "") -> ModelShape:
    """Read a Hugging Face config; what it leaves out is as transformers has it by default.

    Raises InvalidRequest for an architecture that is counted differently.
    """
    if isinstance(inner := config.get("text_config"), Mapping):  # a model that also sees images
        config = {"dtype": config.get("dtype"), **cast("dict[str, Any]", inner)}
    kind = config.get("model_type")
    family = FAMILIES.get(kind) if isinstance(kind, str) else None
    if family is None:
        raise InvalidRequest(
            f"cannot count a model of type {kind!r:.60}; known: {', '.join(sorted(FAMILIES))}"
        )
    config = _renamed(config)
    if any(config.get(key) is None for key in (*_NEEDED, "intermediate_size", *family.needs)):
        config = _renamed(_with_defaults(config))
    if kind == "qwen3_moe" and (
        config.get("mlp_only_layers") or config.get("decoder_sparse_step", 1) != 1
    ):
        raise InvalidRequest("cannot count a qwen3_moe with dense layers between the sparse ones")
    return _shape(config, family, name or str(kind))


def _renamed(config: Fields) -> Fields:
    """Return a config with GPT-2's names under the usual ones."""
    usual = {name: config[own] for name, own in _NAMES.items() if config.get(own) is not None}
    if "n_embd" in config:
        usual["intermediate_size"] = config.get("n_inner") or 4 * config["n_embd"]
    return {**config, **usual}


def _shape(config: Fields, family: Family, name: str) -> ModelShape:
    def size(*keys: str, default: int | None = None) -> int:
        found: Any = next((config[k] for k in keys if config.get(k) is not None), default)
        if type(found) is not int or found < 1:
            raise InvalidRequest(
                f"{name:.60}: {keys[0]} must be a whole number from 1 on, got {found!r:.40}"
            )
        return found

    hidden, heads = size("hidden_size"), size("num_attention_heads")
    head_dim = size("head_dim", default=hidden // heads)
    kv_heads = size("num_key_value_heads", default=heads)
    has_experts = bool(config.get("num_local_experts") or config.get("num_experts"))
    experts = size("num_local_experts", "num_experts") if has_experts else 0
    layers = size("num_hidden_layers")
    qkv_bias, o_bias, mlp_bias = family.bias(config)
    tied = config.get("tie_word_embeddings")
    norm = {"": 0, "head": 2 * head_dim, "all": (heads + kv_heads) * head_dim}[family.qk_norm]
    return ModelShape(
        name=name,
        hidden_size=hidden,
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate_size=size(
            *(["moe_intermediate_size"] if experts else []), "intermediate_size"
        ),
        vocab_size=size("vocab_size"),
        is_tied=family.is_tied if tied is None else bool(tied),
        is_gated=family.is_gated,
        has_qkv_bias=qkv_bias,
        has_o_bias=o_bias,
        has_mlp_bias=mlp_bias,
        num_norms=family.num_norms,
        has_norm_bias=family.has_norm_bias,
        num_qk_norm=norm,
        num_positions=size("max_position_embeddings") if family.has_positions else 0,
        num_experts=experts,
        experts_per_token=size("num_experts_per_tok") if experts else 0,
        sliding=_sliding(config, family, layers),
        bits=_bits(config),
    )


def _sliding(config: Fields, family: Family, layers: int) -> tuple[int, int]:
    window = config.get("sliding_window")
    if type(window) is not int or window < 1 or config.get("use_sliding_window") is False:
        return 0, 0
    kinds = config.get("layer_types")
    if isinstance(kinds, (list, tuple)):
        return list(cast("list[Any]", kinds)).count("sliding_attention"), window
    if config.get("model_type") in ("qwen2", "qwen3", "qwen3_moe"):
        if not config.get("use_sliding_window"):
            return 0, 0
        return max(0, layers - int(config.get("max_window_layers") or 0)), window
    every = int(config.get("sliding_window_pattern") or family.every)
    return (layers - layers // every if every else layers), window


def _bits(config: Fields) -> int:
    quantized = config.get("quantization_config")
    if isinstance(quantized, Mapping):
        fields = cast("Mapping[str, Any]", quantized)
        if type(bits := fields.get("bits")) is int:
            return bits
        if fields.get("load_in_4bit"):
            return 4
        if fields.get("load_in_8bit") or fields.get("quant_method") == "fp8":
            return 8
    return _BITS.get(str(config.get("dtype") or config.get("torch_dtype") or "float16"), 16)


def _with_defaults(config: Fields) -> dict[str, Any]:
    """Fill in what a config leaves out, which only transformers knows."""
    import transformers

    auto: Any = transformers.AutoConfig
    given = {key: value for key, value in config.items() if key != "model_type"}
    try:
        full: Any = auto.for_model(config["model_type"], **given)
    except (ValueError, TypeError, KeyError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise InvalidRequest(f"transformers refuses this config: {reason[0]:.160}") from error
    return {**cast("dict[str, Any]", full.to_dict()), **given, "model_type": config["model_type"]}
