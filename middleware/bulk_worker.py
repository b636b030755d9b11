"""What each worker of a bulk run does."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from ..compressors import Compressed
from .bulk_rows import BadRow, Row
from .bulk_store import Done, Store
from .errors import InvalidRequest
from .sdk import compress


class Worker:
    """Compresses shards of the run in ``folder``, by number.

    The scorer and the token counter are loaded at the first row and kept as long as the process
    lives (``parts``).
    """

    def __init__(self, folder: str, options: Mapping[str, Any]) -> None:
        self._store = Store(folder)
        self._options = dict(options)

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, Any]:
        """Do the shards of ``batch["number"]``; those that are done already are not done again."""
        done = [self.run(int(number)) for number in batch["number"]]
        return {name: [getattr(one, name) for one in done] for name in asdict(Done())}

    def run(self, number: int) -> Done:
        """Compress one shard and keep the result."""
        if done := self._store.done(number):
            return done
        started = time.perf_counter()
        shard = self._store.shards[number]
        rows, bad = self._store.format.read(shard, self._store.columns)
        found: dict[int, Compressed] = {}
        for question in dict.fromkeys(row.question for row in rows):
            some = [(i, row) for i, row in enumerate(rows) if row.question == question]
            results = self._compress([row for _, row in some], question)
            for (i, row), result in zip(some, results, strict=True):
                if isinstance(result, Compressed):
                    found[i] = result
                else:
                    bad.append(BadRow(*_numbered(self._store, number, row, str(result))))
        good = [rows[i] for i in sorted(found)]
        kept = [found[i] for i in sorted(found)]
        done = Done(
            len(good),
            len(bad),
            sum(one.tokens_in for one in kept),
            sum(one.tokens_out for one in kept),
            time.perf_counter() - started,
        )
        bad.sort(key=lambda one: one.row)
        self._store.commit(number, good, [one.text for one in kept], bad, done)
        return done

    def _compress(
        self, rows: Sequence[Row], question: str | None
    ) -> list[Compressed | InvalidRequest]:
        """Return a result a row; when one spoils the call, each is tried alone."""
        options = dict(self._options)
        if question is not None:
            options["question"] = question
        try:
            return list(compress([row.text for row in rows], **options))
        except InvalidRequest as error:
            if len(rows) == 1:
                return [error]
        return [result for row in rows for result in self._compress([row], question)]


def _numbered(store: Store, number: int, row: Row, reason: str) -> tuple[int, str, Any]:
    place, record = store.format.bad(store.shards[number], row)
    return place, reason, record
