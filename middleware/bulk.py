"""Compress millions of rows: a file in, a file out, on the cores of one machine or of many."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, is_dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, cast

from .bulk_ray import need_ray, run_shards
from .bulk_rows import Columns, format_of
from .bulk_store import Done, Store
from .errors import InvalidRequest
from .files import FileError
from .sdk import compress
from .terminal import LONG, progress_bar

BATCH_SIZE = 256
_NOT_FOR_ROWS = ("formats", "progress")
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class BulkReport:
    """What a bulk run did.

    ``rows`` are in the target and ``bad_rows`` in ``bad_rows_file`` (None when there are none):
    together all rows of the source. ``resumed_rows`` of them were done by a run before this one.
    ``tokens_in`` and ``tokens_out`` are those of all texts in the target; ``seconds`` is this run's
    wall time, and ``work_seconds`` the workers' time together, earlier runs' too.
    """

    rows: int
    bad_rows: int
    tokens_in: int
    tokens_out: int
    seconds: float
    work_seconds: float
    resumed_rows: int
    target: str
    bad_rows_file: str | None

    @property
    def rate(self) -> float:
        """Tokens out per token in; 1.0 without tokens."""
        return self.tokens_out / self.tokens_in if self.tokens_in else 1.0


def compress_dataset(
    source: str | Path | Sequence[str | Path],
    target: str | Path,
    *,
    column: str = "text",
    question_column: str | None = None,
    batch_size: int = BATCH_SIZE,
    concurrency: int | None = None,
    num_gpus: float = 0,
    resume: bool = True,
    bad_rows: str | Path | None = None,
    progress: bool | Progress = True,
    **options: Any,
) -> BulkReport:
    """Compress the texts in a column of JSON Lines or Parquet files into one file, with Ray Data.

    ``source`` is a file, several, or a folder of them; ``target`` has the same format. Every row
    comes out once, in the source's order, with all else in it as it was; rows without a text in
    ``column`` go to ``bad_rows`` (default: ``target`` with ".bad.jsonl"), with the reason.
    ``question_column`` holds what a row's text will be asked, and goes before ``question``. The
    other options are those of ``headrace.compress`` and mean the same, a row being a text:
    ``rate``, ``target_tokens`` and the other budgets hold for each row.

    ``concurrency`` actors (default: one a core of the cluster, or one a ``num_gpus``) take
    ``batch_size`` rows at a time. What they have done lies in ``target`` with ".parts": a run that
    was stopped goes on where it was when it is started again with the same arguments
    (``resume=False`` starts over). On more machines than one, source and target must be on a file
    system that all of them see. ``progress`` shows a bar on a terminal, or is called with the rows
    done and their total.

    Raises FileError for files that cannot be read or would be overwritten, InvalidRequest for
    options that make no sense, HeadraceError without Ray, and BackendError when workers cannot be
    kept alive; what is done is kept then.
    """
    started = time.perf_counter()
    _check(batch_size, concurrency, num_gpus, options)
    need_ray()
    goal = Path(target).absolute()
    bad = Path(f"{goal}.bad.jsonl") if bad_rows is None else Path(bad_rows).absolute()
    sources = _sources(source)
    form = format_of([*sources, goal])
    _check_free(goal, bad)
    columns = Columns(column, question_column)
    form.check(sources, columns)
    asked = {
        "sources": [[name, *_stamp(name)] for name in sources],
        "columns": asdict(columns),
        "batch_size": batch_size,
        "options": {name: _plain(value) for name, value in sorted(options.items())},
    }
    folder = Path(f"{goal}.parts")
    if not resume:
        Store.discard(folder)
    store = Store.begin(
        folder,
        asked,
        lambda: chain.from_iterable(form.shards(name, batch_size) for name in sources),
    )
    resumed = _run(store, options, concurrency, num_gpus, progress)
    every = [store.done(number) or Done() for number in range(len(store.shards))]
    report = BulkReport(
        sum(one.rows for one in every),
        num_bad := sum(one.bad for one in every),
        sum(one.tokens_in for one in every),
        sum(one.tokens_out for one in every),
        0.0,
        sum(one.seconds for one in every),
        resumed,
        str(goal),
        str(bad) if num_bad else None,
    )
    store.join(goal, bad)
    return replace(report, seconds=time.perf_counter() - started)


def _run(
    store: Store,
    options: Mapping[str, Any],
    concurrency: int | None,
    num_gpus: float,
    progress: bool | Progress,
) -> int:
    """Have everything done that is not yet; return the rows that were."""
    left = [n for n in range(len(store.shards)) if store.done(n) is None]
    total = sum(shard.rows for shard in store.shards)
    done = resumed = total - sum(store.shards[n].rows for n in left)
    if not left:
        return resumed
    with ExitStack() as stack:
        size = LONG + 1 if progress is True else 0
        bar = stack.enter_context(progress_bar("compressing", size))
        tell = progress if callable(progress) else bar

        def on_done(rows: int) -> None:
            nonlocal done
            done += rows
            if tell is not None:
                tell(done, total)

        run_shards(
            store.folder,
            left,
            dict(options),
            concurrency=concurrency,
            num_gpus=num_gpus,
            on_done=on_done,
        )
    return resumed


def _check(
    batch_size: int, concurrency: int | None, num_gpus: float, options: Mapping[str, Any]
) -> None:
    for what, number in (("batch_size", batch_size), ("concurrency", concurrency)):
        if number is not None and (type(number) is not int or number < 1):
            raise InvalidRequest(f"{what} is a whole number from 1 on, got {number!r:.40}")
    if not isinstance(num_gpus, (int, float)) or num_gpus < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidRequest(f"num_gpus is a number from 0 on, got {num_gpus!r:.40}")
    if name := next((name for name in _NOT_FOR_ROWS if options.get(name) is not None), None):
        raise InvalidRequest(f"{name} is for single texts; leave it out of a bulk run")
    compress([""], **options)  # wrong options are said here, and not once a row


def _sources(source: str | Path | Sequence[str | Path]) -> list[str]:
    given = [source] if isinstance(source, (str, Path)) else list(source)
    found = [path for one in given for path in _files(Path(one).absolute())]
    if not found:
        raise InvalidRequest("a bulk run needs at least one file to read, got none")
    if len(set(found)) < len(found):
        raise InvalidRequest("a source file is there twice; name each once")
    return found


def _files(path: Path) -> Iterator[str]:
    if path.is_dir():
        inside = sorted(p for p in path.iterdir() if p.is_file() and not p.name.startswith("."))
        if not inside:
            raise FileError(f"{path} is a folder without files; pass a file")
        yield from map(str, inside)
    elif path.is_file():
        yield str(path)
    else:
        raise FileError(f"no such file: {path}")


def _check_free(target: Path, bad: Path) -> None:
    if target == bad:
        raise InvalidRequest(f"bad_rows is the target itself, {target}; pass another name")
    for path in (target, bad):
        if path.exists() or path.is_symlink():
            raise FileError(f"{path} exists and is not overwritten; delete it or pass another name")
        if not path.parent.is_dir():
            raise FileError(f"{path.parent} is no folder; make it first or pass another name")


def _stamp(path: str) -> tuple[int, int]:
    found = Path(path).stat()
    return found.st_size, found.st_mtime_ns


def _plain(value: Any) -> Any:
    """Return an option as JSON values, by which runs are told apart."""
    if isinstance(value, re.Pattern):
        pattern = cast("re.Pattern[str]", value)
        return ["pattern", pattern.pattern, pattern.flags]
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in cast("Sequence[Any]", value)]
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value))
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {str(name): _plain(one) for name, one in fields.items()}
    return value if isinstance(value, (str, int, float, bool, type(None))) else repr(value)
