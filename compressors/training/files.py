"""Reading data folders."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...middleware.errors import InvalidRequest


def read_text(path: Path) -> str:
    """Return a text file's content, unpacked as often as it was packed with gzip.

    Raises InvalidRequest when there is no such file.
    """
    if not path.is_file():
        raise InvalidRequest(f"training data: no file {path}; see docs/headrace-mini.md")
    content = path.read_bytes()
    while content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    return content.decode("utf-8")


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the records of a JSON-lines file."""
    # Not splitlines(): texts hold U+2028 and U+0085.
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except ValueError as error:
            raise InvalidRequest(f"{path}, line {number} is no JSON: {error}") from error
