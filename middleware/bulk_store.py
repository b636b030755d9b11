"""What a bulk run has done so far, in a folder beside its target.

    OUT.jsonl.parts/plan.json         what was asked, and the shards
    OUT.jsonl.parts/000007.jsonl      the rows of shard 7
    OUT.jsonl.parts/000007.bad.jsonl  its bad rows
    OUT.jsonl.parts/000007.done       its counts; written last: without it the shard is done again

Every file is written under another name and then renamed, so that it is whole or not there, and a
shard that is done twice (a worker lost after its work) leaves one result.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .bulk_rows import BadRow, Columns, Format, Row, Shard, format_of
from .errors import HeadraceError, InvalidRequest
from .files import FileError

PLAN = "plan.json"


@dataclass(frozen=True, slots=True)
class Done:
    """The counts of a finished shard. ``seconds`` is what compressing it took."""

    rows: int = 0
    bad: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0


class Store:
    """The folder of one run, made with ``Store.begin`` and opened by workers by its path."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        plan = json.loads((self.folder / PLAN).read_text("utf-8"))
        self.shards = [Shard(*one) for one in plan.pop("shards")]
        self.asked: dict[str, Any] = plan
        self.columns = Columns(**plan["columns"])
        self.format: Format = format_of([name for name, *_ in plan["sources"]])

    @classmethod
    def begin(
        cls, folder: Path, asked: Mapping[str, Any], shards: Callable[[], Iterator[Shard]]
    ) -> Store:
        """Open the folder of a run, or make it. Raises InvalidRequest for one that asked else."""
        plan: dict[str, Any] = json.loads(json.dumps(asked))
        if (folder / PLAN).exists():
            store = cls(folder)
            if other := next((k for k, value in plan.items() if store.asked.get(k) != value), None):
                raise InvalidRequest(
                    f"{folder} holds an unfinished run with other {other}; pass the same as"
                    " then, or resume=False (--no-resume) to start over"
                )
            return store
        if folder.exists() and any(not path.name.startswith(".") for path in folder.iterdir()):
            raise FileError(f"{folder} is not ours to write into; move it, or pass another target")
        folder.mkdir(exist_ok=True)
        plan["shards"] = [list(asdict(shard).values()) for shard in shards()]
        _write(folder / PLAN, json.dumps(plan))
        return cls(folder)

    @staticmethod
    def discard(folder: Path) -> None:
        """Delete what a run left; a folder that is not one's is left alone."""
        if (folder / PLAN).exists():
            shutil.rmtree(folder)

    def done(self, number: int) -> Done | None:
        """Return a shard's counts, None when it is still to do."""
        try:
            return Done(**json.loads(self._path(number, ".done").read_text("utf-8")))
        except FileNotFoundError:
            return None

    def commit(
        self,
        number: int,
        rows: Sequence[Row],
        texts: Sequence[str],
        bad: Sequence[BadRow],
        of: Done,
    ) -> None:
        """Keep a shard's result. Raises HeadraceError unless it has every row exactly once."""
        shard = self.shards[number]
        if not len(rows) + len(bad) == of.rows + of.bad == shard.rows:
            raise HeadraceError(
                f"{shard.path} has {len(rows)} + {len(bad)} rows from row {shard.first} on, and had"
                f" {shard.rows} at the start; leave the source alone while it is compressed"
            )
        if bad:
            lines = (json.dumps({"source": shard.path, **asdict(b)}, default=str) for b in bad)
            _write(self._path(number, ".bad.jsonl"), "".join(f"{line}\n" for line in lines))
        part = self._part(number)
        new = _beside(part)
        self.format.write(new, shard, rows, texts, self.columns)
        os.replace(new, part)
        _write(self._path(number, ".done"), json.dumps(asdict(of)))

    def join(self, target: Path, bad_rows: Path) -> None:
        """Put the parts together in the source's order, bad rows first, and delete the folder."""
        numbers = range(len(self.shards))
        bad = [path for n in numbers if (path := self._path(n, ".bad.jsonl")).exists()]
        if bad:
            new = _beside(bad_rows)
            with new.open("wb") as whole:
                whole.writelines(path.read_bytes() for path in bad)
            os.replace(new, bad_rows)
        new = _beside(target)
        self.format.join([self._part(n) for n in numbers], new, self.asked["sources"][0][0])
        os.replace(new, target)
        shutil.rmtree(self.folder)

    def _part(self, number: int) -> Path:
        return self._path(number, self.format.suffixes[0])

    def _path(self, number: int, suffix: str) -> Path:
        return self.folder / f"{number:06}{suffix}"


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.{uuid.uuid4().hex}")


def _write(path: Path, text: str) -> None:
    new = _beside(path)
    new.write_text(text, "utf-8")
    os.replace(new, path)
