"""Loading a token classifier with transformers and torch: the only place that meets them."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

from ...middleware.errors import ModelUnavailable
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
        with _quiet():
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


@contextmanager
def _quiet() -> Generator[None]:
    """Hide the progress bar of loading, and leave the switch as it was."""
    from transformers.utils import logging

    switch: Any = logging
    shown = switch.is_progress_bar_enabled()
    switch.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            switch.enable_progress_bar()
