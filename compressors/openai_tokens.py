"""Counting tokens as OpenAI's models do, with tiktoken and its files, offline."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import tempfile
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..middleware.errors import InvalidRequest, ModelUnavailable

FILES = {
    "cl100k_base": (
        "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
    "o200k_base": (
        "fb374d419588a4632f3f557e76b4b70aebbca790",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
}
"""Encodings, the names of their files in tiktoken's cache, and the files' SHA-256."""
_MODEL = re.compile(r"(ft:)?(gpt-[345o]|gpt-35|o[134]\b|chatgpt-|text-embedding-(3|ada-002))")
_SAME = {"o200k_harmony": "o200k_base"}
_LOCK = threading.Lock()


@dataclass(frozen=True)
class TiktokenCounter:
    """Counts with one of OpenAI's encodings, "cl100k_base" or "o200k_base".

    Text that spells a special token (``<|endoftext|>``) is counted as text: that is what a server
    does with a prompt. Lone surrogates count as U+FFFD. Nothing is ever downloaded.

    Raises InvalidRequest for another encoding, and ModelUnavailable when tiktoken or the
    encoding's file is not on this machine.
    """

    encoding: str
    name: str

    def __post_init__(self) -> None:
        if self.encoding not in FILES:
            raise InvalidRequest(
                f"encoding must be one of {', '.join(FILES)}, got {self.encoding!r:.80}"
            )
        _load(self.encoding)

    def count(self, text: str) -> int:
        """Return the number of tokens."""
        from .tokens import replace_surrogates

        return len(_load(self.encoding).encode_ordinary(replace_surrogates(text)))

    def count_many(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text; equal texts are encoded once."""
        known = {text: self.count(text) for text in dict.fromkeys(texts)}
        return [known[text] for text in texts]


def encoding_of(name: str) -> str | None:
    """Return the encoding that a name means: its own, or an OpenAI model's; else None.

    Raises ModelUnavailable for a model's name without tiktoken, which knows them.

    >>> encoding_of("cl100k_base"), encoding_of("org/model")
    ('cl100k_base', None)
    """
    if name in FILES:
        return name
    if not _MODEL.match(name):
        return None
    try:
        encoding: str = _tiktoken(name).encoding_name_for_model(name)
    except KeyError:
        return None
    encoding = _SAME.get(encoding, encoding)
    return encoding if encoding in FILES else None


def places() -> list[Path]:
    """Return the folders in which an encoding's file is looked for, in order."""
    found = [os.environ.get(name) for name in ("TIKTOKEN_CACHE_DIR", "DATA_GYM_CACHE_DIR")]
    folders = [Path(folder) for folder in found if folder]
    folders.append(Path(tempfile.gettempdir()) / "data-gym-cache")
    try:
        spec = importlib.util.find_spec("llama_index.core")
    except ImportError:
        spec = None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        folders.append(Path(folder) / "_static" / "tiktoken_cache")
    return folders


@lru_cache(maxsize=len(FILES))
def _load(encoding: str) -> Any:
    tiktoken = _tiktoken(encoding)
    file, digest = FILES[encoding]
    looked = places()
    for folder in looked:
        path = folder / file
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == digest:
            with _LOCK, _cache_folder(folder):
                return tiktoken.get_encoding(encoding)
    raise ModelUnavailable(
        f"the file of {encoding} is not on this machine (looked for {file} in"
        f" {', '.join(map(str, looked))}); set TIKTOKEN_CACHE_DIR to a folder that has it, or run:"
        " pip install llama-index-core, which carries it"
    )


@contextmanager
def _cache_folder(folder: Path) -> Generator[None]:
    """Point tiktoken at a folder while it reads the file; it takes an environment variable only."""
    before = os.environ.get("TIKTOKEN_CACHE_DIR")
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ["TIKTOKEN_CACHE_DIR"]
        else:
            os.environ["TIKTOKEN_CACHE_DIR"] = before


def _tiktoken(name: str) -> Any:
    try:
        import tiktoken
    except ImportError as error:
        raise ModelUnavailable(
            f"counting tokens for {name!r} needs tiktoken; run: pip install 'headrace[tiktoken]'"
        ) from error
    return tiktoken
