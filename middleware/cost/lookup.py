"""From a model's name to its shape."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, cast

from .. import models
from ..errors import InvalidRequest, ModelUnavailable
from .families import from_config
from .shape import ModelShape

_NAMED = Path(__file__).parent / "data" / "models.json"


def shape_of(model: str) -> ModelShape:
    """Return the shape of a model: a folder or config.json, an embedded or a hub's name.

    Some well-known names need no files: "llama-2-7b", "llama-2-13b", "llama-3.1-8b",
    "llama-3.1-70b". Of a model on the hub, only the config is fetched.

    Raises InvalidRequest for a malformed name or a kind of model that is not known, and
    ModelUnavailable when there is no config.
    """
    if not isinstance(model, str) or not model:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f"model is a name or a folder, got {model!r:.60}")
    if named := _named().get(model.lower()):
        return from_config(named, model.lower())
    path = _config_path(model)
    try:
        config: Any = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"cannot read {path}: {error}; pass a model's config.json") from None
    if not isinstance(config, dict):
        raise InvalidRequest(f"{path} is no model's config: it holds no JSON object")
    return from_config(cast("dict[str, Any]", config), model)


def _config_path(model: str) -> Path:
    given = Path(model).expanduser()
    if given.suffix == ".json" and given.is_file():
        return given
    if (given / "config.json").is_file():
        return given / "config.json"
    if any(model.lower() in {one.repo.lower(), *one.aliases} for one in models.EMBEDDED):
        return models.resolve(model, kind="decoder") / "config.json"
    if found := models.locate(model, kind="decoder"):
        return found.path / "config.json"
    return _hub_config(model)


def _hub_config(repo: str) -> Path:
    import huggingface_hub
    from huggingface_hub import errors

    download: Any = cast("Any", huggingface_hub).hf_hub_download
    failures = (errors.HfHubHTTPError, errors.HFValidationError, OSError)
    try:
        return Path(download(repo, "config.json", local_files_only=models.is_offline()))
    except failures as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ModelUnavailable(
            f"no config of {repo!r:.80} ({reason:.120}); pass its config.json, or one of"
            f" {', '.join(_named())}"
        ) from None


@cache
def _named() -> dict[str, dict[str, Any]]:
    return cast("dict[str, dict[str, Any]]", json.loads(_NAMED.read_text(encoding="utf-8")))
