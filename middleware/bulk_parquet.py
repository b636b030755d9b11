"""Parquet for bulk runs: a shard is a range of rows of one row group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from .bulk_rows import BadRow, Columns, Row, Shard
from .errors import HeadraceError
from .files import FileError


class Parquet:
    """Tables. Types, order and metadata of the columns stay; the last row group read is kept."""

    suffixes: tuple[str, ...] = (".parquet",)

    def __init__(self) -> None:
        self._last: tuple[tuple[str, int], Any] | None = None

    def check(self, paths: Sequence[str], columns: Columns) -> None:
        """Raise FileError for a missing column, one without texts, and files that differ."""
        schemas = [_opened(path).schema_arrow for path in paths]
        types = _pyarrow().types
        for path, schema in zip(paths, schemas, strict=True):
            for name in (columns.text, columns.question):
                if name is None:
                    continue
                place = schema.get_field_index(name)
                if place < 0:
                    has = ", ".join(schema.names)
                    raise FileError(f"{path} has no column {name!r}; it has {has:.200}")
                kind = schema.field(place).type
                if not any(is_text(kind) for is_text in (types.is_string, types.is_large_string)):
                    raise FileError(f"column {name!r} of {path} holds {kind}, not text; cast it")
            if not schema.equals(schemas[0]):
                raise FileError(f"{path} has other columns or types than {paths[0]}; run it alone")

    def shards(self, path: str, size: int) -> Iterator[Shard]:
        """Yield the file's shards; reads its footer only."""
        metadata = _opened(path).metadata
        first = 1
        for group in range(metadata.num_row_groups):
            count = metadata.row_group(group).num_rows
            for start in range(0, count, size):
                rows = min(size, count - start)
                yield Shard(path, start, start + rows, first + start, rows, group)
            first += count

    def read(self, shard: Shard, columns: Columns) -> tuple[list[Row], list[BadRow]]:
        """Return the rows that hold a text, and those that do not."""
        table = self._table(shard)
        names = [columns.text, *([columns.question] if columns.question else [])]
        values = [table.column(name).to_pylist() for name in names]
        rows: list[Row] = []
        bad: list[BadRow] = []
        for place, found in enumerate(zip(*values, strict=True)):
            fields = dict(zip(names, found, strict=True))
            row = Row(fields[columns.text] or "", fields.get(columns.question or ""), place, None)
            if reason := columns.why_bad(fields):
                bad.append(BadRow(shard.first + place, reason, self.bad(shard, row)[1]))
            else:
                rows.append(row)
        return rows, bad

    def write(
        self, path: Path, shard: Shard, rows: Sequence[Row], texts: Sequence[str], columns: Columns
    ) -> None:
        """Write the rows as they were, but for the text."""
        arrow, parquet = _pyarrow(), _parquet()
        table = self._table(shard)
        place = table.schema.get_field_index(columns.text)
        field = table.schema.field(place)
        kept = table.take(arrow.array([row.place for row in rows], arrow.int64()))
        column = arrow.array(list(texts), field.type)
        parquet.write_table(kept.set_column(place, field, column), path)

    def join(self, parts: Sequence[Path], target: Path, like: str) -> None:
        """Write the parts into one file, each a row group."""
        with _parquet().ParquetWriter(target, _opened(like).schema_arrow) as writer:
            for part in parts:
                table = _parquet().read_table(part, partitioning=None)
                if table.num_rows:
                    writer.write_table(table)

    def bad(self, shard: Shard, row: Row) -> tuple[int, Any]:
        """Return the row's number and its values."""
        (record,) = self._table(shard).slice(row.place, 1).to_pylist()
        return shard.first + row.place, record

    def _table(self, shard: Shard) -> Any:
        key = shard.path, shard.group
        if self._last is None or self._last[0] != key:
            self._last = key, _opened(shard.path).read_row_group(shard.group)
        return self._last[1].slice(shard.start, shard.stop - shard.start)


def _opened(path: str) -> Any:
    try:
        return _parquet().ParquetFile(path)
    except (OSError, _pyarrow().ArrowException) as error:
        raise FileError(f"cannot read {path} as Parquet: {str(error).splitlines()[0]}") from None


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise HeadraceError("Parquet needs pyarrow: pip install 'headrace[ray]'") from error
    return pyarrow


def _parquet() -> Any:
    _pyarrow()
    import pyarrow.parquet

    return pyarrow.parquet
