"""Files in and out: nothing misread in silence, nothing of the user's overwritten."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from ..compressors.structured.scan import scan
from .errors import HeadraceError
from .passages import passages
from .types import Document
from .verbatim import read_json

MAX_BYTES = 10_000_000
GENERATOR = '<meta name="generator" content="headrace">'
"""What our HTML files carry, so that they may be written again."""


class FileError(HeadraceError):
    """A file cannot be read or written; the message says which, why and what to do."""


def read_text(source: str, *, max_bytes: int = MAX_BYTES) -> str:
    """Return the text of a file, or of standard input for "-", exactly as it is.

    UTF-8 only; line ends and a byte order mark stay. Raises FileError for what is missing, a
    folder, binary, not UTF-8 or larger than ``max_bytes``.
    """
    try:
        if source == "-":
            if sys.stdin is None:  # pyright: ignore[reportUnnecessaryComparison]
                raise FileError("standard input is closed; pass a file")
            data = sys.stdin.buffer.read(max_bytes + 1)
        else:
            with open(source, "rb") as file:
                data = file.read(max_bytes + 1)
    except FileNotFoundError:
        raise FileError(f"no such file: {source}") from None
    except IsADirectoryError:
        raise FileError(f"{source} is a folder; pass a file") from None
    except (OSError, ValueError) as error:
        raise FileError(f"cannot read {source!r}: {error}") from None
    return decode(data, source, max_bytes=max_bytes)


def decode(data: bytes, source: str, *, max_bytes: int = MAX_BYTES) -> str:
    """Return the bytes as text, or raise FileError saying why they are none."""
    name = "standard input" if source == "-" else source
    if len(data) > max_bytes:
        raise FileError(
            f"{name} has more than {max_bytes / 1e6:.0f} MB, the limit; split it (split -C 9m) "
            "and pass the parts one by one"
        )
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise FileError(f"{name} is UTF-16; convert it first: iconv -f UTF-16 -t UTF-8")
    zero = data.find(0)
    if zero >= 0:
        raise FileError(f"{name} is binary (a zero byte at offset {zero}); pass a text file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(
            f"{name} is not UTF-8 (byte 0x{data[error.start]:02x} at offset {error.start}); "
            "convert it first, for example: iconv -f LATIN1 -t UTF-8"
        ) from None


def check_writable(path: Path) -> None:
    """Raise FileError unless the path is free or holds an HTML file that headrace wrote."""
    if path.is_dir():
        raise FileError(f"{path} is a folder; pass a file name")
    if not path.parent.is_dir():
        raise FileError(f"{path.parent} is no folder; make it first or pass another name")
    if path.is_symlink() and not path.exists():
        raise FileError(f"{path} is a link to nowhere; pass another name")
    if path.exists():
        try:
            with path.open("rb") as file:
                is_ours = GENERATOR.encode() in file.read(1000)
        except OSError as error:
            raise FileError(f"cannot write {path}: {error.strerror}") from None
        if not is_ours:
            raise FileError(f"{path} exists and is not ours to overwrite; pass another name")


def write_text(path: Path, text: str) -> None:
    """Write the file whole or not at all."""
    check_writable(path)
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="", errors="replace") as file:
                file.write(text)
            os.chmod(name, 0o644)
            os.replace(name, path)
        except BaseException:
            os.unlink(name)
            raise
    except OSError as error:
        raise FileError(f"cannot write {path}: {error.strerror}") from None


def read_documents(
    paths: Sequence[str], *, on_skip: Callable[[str], None], size: int = 1200
) -> list[Document]:
    """Read files and folders as documents of about ``size`` characters each.

    A .jsonl file has a document a line ({"text", "id"?, "title"?, ...}); any other text file is cut
    into passages (see ``passages``), with the file's name as title and ``name#number`` as id.
    Folders are read with everything below them; hidden and unreadable files in them are skipped
    and ``on_skip`` is told why. A path that was named itself must be readable: FileError.
    """
    found: list[Document] = []
    for path in paths:
        if path != "-" and Path(path).is_dir():
            for file in sorted(p for p in Path(path).rglob("*") if p.is_file()):
                relative = file.relative_to(path)
                if any(part.startswith(".") for part in relative.parts):
                    continue
                try:
                    found += _documents(str(file), str(relative), size)
                except FileError as error:
                    on_skip(f"skipped: {error}")
        else:
            name = "stdin" if path == "-" else Path(path).name
            found += _documents(path, name, size)
    return found


def _documents(source: str, name: str, size: int) -> list[Document]:
    text = read_text(source)
    name = name.encode("utf-8", "replace").decode()  # a name need not be UTF-8
    if name.endswith(".jsonl"):
        return [record_document(record) for _, record in read_records(text, name)]
    cut = [passage for passage in passages(text, size, name) if passage.strip()]
    return [
        Document(passage, title=name, id=f"{name}#{number}")
        for number, passage in enumerate(cut, 1)
    ]


def record_document(record: dict[str, Any]) -> Document:
    """Return a JSON Lines record as a document; every other key is metadata."""
    rest = {k: v for k, v in record.items() if k not in ("text", "title", "id", "score")}
    given, title = record.get("id"), record.get("title")
    return Document(
        record["text"],
        title if isinstance(title, str) else "",
        None if given is None else str(given),
        metadata=rest,
    )


def read_records(text: str, source: str) -> list[tuple[str, dict[str, Any]]]:
    r"""Return the lines of a JSON Lines text and the objects in them; each must have a ``text``.

    Lines end at "\n" only (JSON strings may hold any other separator); blank lines are skipped.
    Raises FileError with the line's number.
    """
    records: list[tuple[str, dict[str, Any]]] = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        if not line.strip():
            continue
        try:
            record: Any = read_json(line)
        except (ValueError, RecursionError) as error:
            raise FileError(f"{source}, line {number} is no JSON: {error}") from None
        if not isinstance(record, dict):
            raise FileError(
                f"{source}, line {number} is a JSON {type(record).__name__}; each line must be "
                'an object such as {"id": "1", "text": "..."}'
            )
        fields = cast("dict[str, Any]", record)
        if not isinstance(fields.get("text"), str):
            raise FileError(
                f'{source}, line {number} has no "text" that is a string; its keys are '
                f"{sorted(fields)!r:.80}"
            )
        records.append((line.strip(), fields))
    return records


def with_score(line: str, record: dict[str, Any], score: float) -> str:
    """Return a JSON Lines line with the score, at its end if it had none; all else stays as it was.

    >>> with_score('{"text": "a", "price": 1.10}', {"text": "a", "price": 1.1}, 0.5)
    '{"text": "a", "price": 1.10, "score": 0.5}'
    """
    if "score" in record:
        for node in reversed(scan(line)):
            if node.parent == 0 and node.step == "score":
                line = f"{line[: node.start]}{json.dumps(score)}{line[node.end :]}"
        return line
    return f'{line[:-1].rstrip()}, "score": {json.dumps(score)}}}'
