"""JSON Lines for bulk runs: a shard is a range of bytes, and a row is its line."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

from .bulk_rows import BadRow, Columns, Row, Shard
from .verbatim import read_json, rewritten

_BOM = b"\xef\xbb\xbf"


class JsonLines:
    r"""An object a line. Lines end at "\n" only; blank ones are no rows."""

    suffixes: tuple[str, ...] = (".jsonl", ".ndjson")

    def check(self, paths: Sequence[str], columns: Columns) -> None:
        """Nothing is known before the lines are read."""

    def shards(self, path: str, size: int) -> Iterator[Shard]:
        """Yield the file's shards; reads it once, line by line."""
        start = stop = rows = 0
        first = 1
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                stop += len(line)
                rows += not line.isspace()
                if rows == size:
                    yield Shard(path, start, stop, first, rows)
                    start, first, rows = stop, number + 1, 0
        if rows:
            yield Shard(path, start, stop, first, rows)

    def read(self, shard: Shard, columns: Columns) -> tuple[list[Row], list[BadRow]]:
        """Return the lines that hold a text, and those that do not."""
        with open(shard.path, "rb") as file:
            file.seek(shard.start)
            data = file.read(shard.stop - shard.start)
        if shard.start == 0:
            data = data.removeprefix(_BOM)
        rows: list[Row] = []
        bad: list[BadRow] = []
        for number, raw in enumerate(data.split(b"\n"), shard.first):
            if not raw or raw.isspace():
                continue
            try:
                line = raw.decode().strip()
                record: Any = read_json(line)
            except (ValueError, RecursionError) as error:
                what = "not UTF-8" if isinstance(error, UnicodeDecodeError) else "no JSON"
                bad.append(BadRow(number, f"{what}: {error}", raw.decode("utf-8", "replace")))
                continue
            if not isinstance(record, dict):
                kind = type(record).__name__
                bad.append(BadRow(number, f"a JSON {kind}, not an object", line))
                continue
            fields = cast("dict[str, Any]", record)
            if reason := columns.why_bad(fields):
                bad.append(BadRow(number, reason, line))
                continue
            question = fields.get(columns.question) if columns.question else None
            rows.append(Row(fields[columns.text], question, number, line))
        return rows, bad

    def write(
        self, path: Path, shard: Shard, rows: Sequence[Row], texts: Sequence[str], columns: Columns
    ) -> None:
        """Write the lines as they were, but for the text."""
        with path.open("w", encoding="utf-8", newline="") as file:
            for row, text in zip(rows, texts, strict=True):
                line = row.source if text == row.text else with_text(row.source, columns.text, text)
                file.write(f"{line}\n")

    def join(self, parts: Sequence[Path], target: Path, like: str) -> None:
        """Copy the parts one after another."""
        with target.open("wb") as whole:
            for part in parts:
                with part.open("rb") as file:
                    shutil.copyfileobj(file, whole, 1 << 20)

    def bad(self, shard: Shard, row: Row) -> tuple[int, Any]:
        """Return the line's number and the line."""
        return row.place, row.source


def with_text(line: str, column: str, text: str) -> str:
    """Return a line with another text in a column, and every other character as it was.

    Of a key that is there twice the last counts, as for ``json.loads``.

    >>> with_text('{"price": 1.10, "text": "a  b", "x": {"text": 1}}', "text", "b")
    '{"price": 1.10, "text": "b", "x": {"text": 1}}'
    """
    record: dict[str, Any] = read_json(line)
    if column not in record:
        raise ValueError(f"no key {column!r} in the line")
    return rewritten(line, record, {**record, column: text})
