"""What the commands write: text to stdout, everything else to stderr."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Any, cast

from .errors import HeadraceError

LONG = 200_000  # characters that take long enough to watch


def print_text(text: str) -> None:
    """Write text to stdout exactly as it is."""
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise HeadraceError("standard output is closed; there is nowhere to write to")
    sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def print_json(value: Any) -> None:
    """Write a value to stdout as one line of JSON; NaN and infinity, which it has not, are null."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=str, allow_nan=False)
    except ValueError:
        value = _finite(json.loads(json.dumps(value, default=str)))
        text = json.dumps(value, ensure_ascii=False)
    if re.search(r"[\ud800-\udfff]", text):  # which JSON can escape and UTF-8 cannot hold
        text = json.dumps(value, default=str)
    print_text(text + "\n")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_finite(one) for one in cast("Any", value)]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def say(message: str) -> None:
    """Write one line to stderr, if there is one: a note must not cost the result."""
    if sys.stderr is not None:  # pyright: ignore[reportUnnecessaryComparison]
        with suppress(OSError):
            sys.stderr.write(f"headrace: {' '.join(message.splitlines())}\n")
            sys.stderr.flush()


def print_table(
    columns: Iterable[str], rows: Iterable[Iterable[str]], *, to_stderr: bool = False
) -> None:
    """Write a table without lines."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    stream = sys.stderr if to_stderr else sys.stdout
    if stream is None:  # pyright: ignore[reportUnnecessaryComparison]
        return
    Console(file=stream, width=None if stream.isatty() else 160).print(table)


@contextmanager
def progress_bar(what: str, size: int) -> Generator[Callable[[int, int], None] | None]:
    """Show a bar on stderr, only at a terminal and for long texts; yield what moves it."""
    stream = sys.stderr
    is_shown = stream is not None and stream.isatty() and size > LONG  # pyright: ignore[reportUnnecessaryComparison]
    if not is_shown:
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(file=stream), transient=True) as bar:
        task = bar.add_task(what, total=size)

        def move(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield move
