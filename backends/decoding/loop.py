"""The batched decode loop: rows join and leave between any two forward passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from ...middleware.errors import HeadraceError
from .batch import Batch
from .prefixes import SHORTEST, PrefixStore, num_shared
from .row import Row

if TYPE_CHECKING:
    import torch

News = tuple[Row, str | HeadraceError]


class Loop:
    """Writes the answers of all its rows together.

    With a ``store``, rows whose prompts begin alike follow the one that reads it first.

    ``admit`` and ``step`` yield each row with its next text, or with the error that ends it. A
    row is done when its ``finish_reason`` is set (its last text may be empty).
    """

    def __init__(self, model: Any, store: PrefixStore | None = None) -> None:
        self._batch = Batch(model)
        self._store = store

    @property
    def rows(self) -> Sequence[Row]:
        """The rows that are not done."""
        return self._batch.rows

    @property
    def is_open(self) -> bool:
        """Whether rows may join now; some models' caches let none in before all have left."""
        return not self._batch.rows or self._batch.is_plain

    @property
    def is_plain(self) -> bool:
        """Whether rows may join in several groups."""
        return self._batch.is_plain

    def admit(self, rows: Sequence[Row]) -> Iterator[News]:
        """Read the prompts of new rows, together with what is certain of their answers."""
        going: list[Row] = []
        for row in rows:
            yield from _told(row, row.start, going)
        for group in self._led(going):
            before = list(self._batch.rows)
            logits = self._batch.join(group, self._store)
            yield from self._take(group, logits, before)

    def _led(self, rows: Sequence[Row]) -> list[list[Row]]:
        """Return the rows in groups, each after those whose beginnings it can use."""
        if self._store is None or not self._batch.is_plain:
            return [[*rows]] if rows else []
        leaders: list[Row] = []
        others: list[Row] = []
        for row in rows:
            known = self._store.find(row.prompt)
            new = SHORTEST + (known.length if known else 0)
            shares = any(num_shared(row.prompt, leader.prompt) > new for leader in leaders)
            (others if shares else leaders).append(row)
        return [group for group in (leaders, others) if group]

    def step(self) -> Iterator[News]:
        """Read every row's newest tokens."""
        yield from self._take(self._batch.rows, self._batch.step(), [])

    def drop(self, is_wanted: Callable[[Row], bool]) -> None:
        """Let the rows leave that nobody wants any more."""
        if self._batch.rows:
            self._batch.keep([row for row in self._batch.rows if is_wanted(row)])

    def _take(
        self, rows: Sequence[Row], logits: Sequence[torch.Tensor], others: Sequence[Row]
    ) -> Iterator[News]:
        going: list[Row] = [*others]
        rejected = {id(row): 0 for row in self._batch.rows}
        for row, row_logits in zip(rows, logits, strict=True):
            if not len(row_logits):  # it has more to read
                going.append(row)
                continue
            before, guessed = row.num_read, len(row.draft)
            yield from _told(row, partial(row.take, row_logits), going)
            rejected[id(row)] = guessed - (row.num_read - before)
        self._batch.settle([rejected[id(row)] for row in self._batch.rows])
        self._batch.keep(going)


def _told(row: Row, act: Callable[[], str], going: list[Row]) -> Iterator[News]:
    """Yield what a row has to tell after an act; one that is not done goes on."""
    try:
        delta = act()
    except HeadraceError as error:
        yield row, error
        return
    if delta or row.finish_reason:
        yield row, delta
    if not row.finish_reason:
        going.append(row)
