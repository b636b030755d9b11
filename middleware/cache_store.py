"""diskcache, told to read and write text only. Imports diskcache: import this where it is used."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .errors import HeadraceError

try:
    import diskcache  # pyright: ignore[reportMissingImports]
except ImportError as error:  # pragma: no cover
    raise HeadraceError("a cache needs diskcache: pip install 'headrace[cache]'") from error

RAW, TEXT = diskcache.core.MODE_RAW, diskcache.core.MODE_TEXT
Disk: Any = diskcache.Disk


class TextDisk(Disk):  # type: ignore[misc]
    """Keys and values are text. What claims to be anything else counts as absent."""

    def fetch(self, mode: int, filename: str, value: Any, read: bool) -> str | None:
        """Return a stored text; never unpickles, and opens no file outside the folder."""
        if mode == TEXT and ".." not in Path(filename).parts and not Path(filename).is_absolute():
            try:
                disk: Any = super()
                return str(disk.fetch(mode, filename, value, False))
            except UnicodeDecodeError:
                return None
        return value if mode == RAW and isinstance(value, str) else None

    def store(self, value: Any, read: bool, key: Any = None) -> Any:
        """Store a text."""
        if type(value) is not str:
            raise TypeError(f"only text is stored, got {type(value).__name__}")
        disk: Any = super()
        return disk.store(value, False, key)


def open_store(folder: Path, max_bytes: int) -> Any:
    """Open the store in a folder, which is made when it is not there."""
    return diskcache.Cache(
        str(folder),
        disk=TextDisk,
        size_limit=max_bytes,
        eviction_policy="least-recently-stored",
        timeout=5,
    )
