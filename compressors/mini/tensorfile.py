"""safetensors files, with types."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast


def save(tensors: dict[str, Any], path: Path, metadata: dict[str, str] | None = None) -> None:
    """Write tensors by name."""
    import safetensors.torch

    cast("Any", safetensors.torch).save_file(tensors, path, {"format": "pt", **(metadata or {})})
    path.chmod(0o644)  # the library makes it the owner's alone


def load(path: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Return tensors by name, and the metadata."""
    import safetensors

    with cast("Any", safetensors).safe_open(path, "pt") as file:
        tensors = {str(name): file.get_tensor(name) for name in list(file.keys())}
        metadata: dict[str, str] = dict(file.metadata() or {})
    return tensors, metadata


def arrays(path: Path) -> dict[str, Any]:
    """Return tensors by name as numpy arrays, without torch.

    Raises ValueError when the file is no safetensors file.
    """
    import safetensors

    try:
        with cast("Any", safetensors).safe_open(path, "np") as file:
            return {str(name): file.get_tensor(name) for name in list(file.keys())}
    except safetensors.SafetensorError as error:
        raise ValueError(str(error)) from error
