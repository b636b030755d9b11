"""Loading a token classifier with transformers and torch: the only place that meets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from ...middleware.errors import ModelUnavailable
from ...middleware.models import silent_transformers
from ..tokens import load_tokenizer


def load_classifier(path: Path, device: str | None) -> tuple[Any, Any, str]:
    """Return the model in eval mode, its tokenizer and the device's name.

    Raises ModelUnavailable when the weights cannot be read.
    """
    import torch
    from transformers import AutoModelForTokenClassification

    place = device or _best_device()
    load = cast("Any", AutoModelForTokenClassification).from_pretrained
    try:
        with silent_transformers():
            model: Any = load(str(path), dtype=torch.float32, use_safetensors=True)
    except (OSError, ValueError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelUnavailable(f"cannot load the token classifier in {path}: {first}") from error
    tokenizer = load_tokenizer(path)
    tokenizer.encode_special_tokens = True  # "[SEP]" in a text is text
    return model.to(place).eval(), tokenizer, place


def _best_device() -> str:
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
