"""From the reference's constructor to a scorer and a counter."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from ...middleware.errors import InvalidRequest, ModelUnavailable
from ...middleware.models import locate, resolve
from ..scorers import Lexical, Scorer, TokenClassifier, make_scorer
from ..tokens import ApproximateCounter, TokenCounter, make_counter

DEFAULT_MODEL = "NousResearch/Llama-2-7b-hf"
_BUILT_IN = ("auto", "lexical", "mini")


def scorer_of(
    name: str,
    device_map: str,
    config: Mapping[str, Any],
    batch: int | None,
    *,
    is_classifier: bool,
    notes: list[str],
) -> Scorer:
    """Return the scorer for a model, which is loaded on first use.

    "lexical", "auto" and "mini" need no model. The reference's default, a model of 7 billion
    parameters, is never downloaded: where it is not on this machine, ``Lexical`` stands in and
    ``notes`` says so.

    Raises ModelUnavailable when any other model is not found, InvalidRequest when it is of the
    wrong kind.
    """
    precision = _precision(config, notes)
    if name in _BUILT_IN:
        return make_scorer(name)
    if name == DEFAULT_MODEL and locate(name) is None:
        notes.append(f"{name} is not on this machine and was not asked for by name: lexical scores")
        return Lexical()
    device = None if device_map in ("cuda", "auto", "balanced") else device_map
    if is_classifier:
        tokens = None if batch is None else 512 * batch
        return TokenClassifier(name, device=device, batch_tokens=tokens, precision=precision)
    if (resolve(name) / "config.json").read_text("utf-8").find("ForTokenClassification") >= 0:
        raise InvalidRequest(f"model {name!r} is a token classifier; give use_llmlingua2=True")
    from ..perplexity import Perplexity

    return Perplexity(name, device=device, dtype=precision)


def counter_of(notes: list[str], *, must_be_exact: bool) -> TokenCounter:
    """Return cl100k_base's counter, as the reference counts; without its file an estimate.

    Raises ModelUnavailable without the file when the count must be exact.
    """
    try:
        return make_counter("cl100k_base")
    except ModelUnavailable as error:
        if must_be_exact:
            raise
        notes.append(f"tokens are estimated: {error}")
        return ApproximateCounter()


def _precision(config: Mapping[str, Any], notes: list[str]) -> Literal["float32", "bfloat16"]:
    precision: Literal["float32", "bfloat16"] = "float32"
    for key, value in config.items():
        if key == "trust_remote_code":
            if value:
                notes.append("trust_remote_code is not used: no code of a model is ever run")
        elif key in ("torch_dtype", "dtype"):
            precision = "bfloat16" if "bfloat16" in str(value) else "float32"
        elif key != "pad_to_left":
            notes.append(f"model_config has {key!r}, which is not used")
    return precision
