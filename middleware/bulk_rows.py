"""What a bulk run reads and writes: shards of rows, and the file formats that hold them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Shard:
    """Rows that follow one another in a file: the unit of work, and of going on after a stop.

    ``start`` and ``stop`` are bytes of the file in JSON Lines, and rows of row group ``group`` in
    Parquet. ``first`` is the number of the first line or row, counted from 1, and ``rows`` how
    many there are, blank lines left out.
    """

    path: str
    start: int
    stop: int
    first: int
    rows: int
    group: int = 0


@dataclass(frozen=True, slots=True)
class Columns:
    """Where a row has its text, and, if anywhere, its question."""

    text: str
    question: str | None = None

    def why_bad(self, row: Mapping[str, Any]) -> str | None:
        """Return why a row cannot be compressed, None when it can. A question may be missing.

        >>> Columns("text").why_bad({"text": 7})
        '"text" is a int, not a text'
        """
        if row.get(self.text) is None:
            has = f"its keys are {', '.join(sorted(row)) or 'none'}"
            return f'no "{self.text}"; {has:.200}' if self.text not in row else "no text: null"
        for name in (self.text, self.question):
            value = row.get(name) if name is not None else None
            if value is not None and not isinstance(value, str):
                return f'"{name}" is a {type(value).__name__}, not a text'
        return None


@dataclass(frozen=True, slots=True)
class Row:
    """A row that can be compressed; ``place`` and ``source`` are its format's own."""

    text: str
    question: str | None
    place: int
    source: Any


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that cannot: its number in the file from 1 on, why, and what it says."""

    row: int
    reason: str
    record: Any


class Format(Protocol):
    """A file format. Everything but the text column goes through it as it is."""

    @property
    def suffixes(self) -> tuple[str, ...]:
        """How the names of such files end."""
        ...

    def check(self, paths: Sequence[str], columns: Columns) -> None:
        """Raise FileError when the files as a whole cannot be compressed."""
        ...

    def shards(self, path: str, size: int) -> Iterator[Shard]:
        """Yield the file's shards of at most ``size`` rows, in order."""
        ...

    def read(self, shard: Shard, columns: Columns) -> tuple[list[Row], list[BadRow]]:
        """Return the shard's rows."""
        ...

    def write(
        self, path: Path, shard: Shard, rows: Sequence[Row], texts: Sequence[str], columns: Columns
    ) -> None:
        """Write the rows of a shard with new texts."""
        ...

    def join(self, parts: Sequence[Path], target: Path, like: str) -> None:
        """Write the parts one after another into one file; ``like`` is a source file."""
        ...

    def bad(self, shard: Shard, row: Row) -> tuple[int, Any]:
        """Return a row's number in the file and what it says."""
        ...


def format_of(paths: Sequence[str | Path]) -> Format:
    """Return the format that the paths' names say. Raises InvalidRequest unless they agree."""
    from .bulk_jsonl import JsonLines
    from .bulk_parquet import Parquet

    found: dict[str, Format] = {}
    known: list[Format] = [JsonLines(), Parquet()]
    for path in paths:
        suffix = Path(path).suffix.lower()
        one = next((one for one in known if suffix in one.suffixes), None)
        if one is None:
            names = ", ".join(name for one in known for name in one.suffixes)
            raise InvalidRequest(f"{path} is neither JSON Lines nor Parquet ({names}); convert it")
        found[one.suffixes[0]] = one
    if len(found) != 1:
        listed = ", ".join(str(path) for path in paths)
        raise InvalidRequest(
            f"source and target must be of one format, got {listed:.200}; give them the same ending"
        )
    return next(iter(found.values()))
