"""A language model reads texts piece by piece and forgets what does not matter."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, cast

from .model import CausalModel

if TYPE_CHECKING:
    import torch

_CHUNK = 16  # rows of logits that are normalised together: they fit into a cache


class Reading:
    """What the rows of a batch have read: keys and values, and what each row expects next.

    Every token is computed once. ``forget`` gathers the keys and values of the tokens that stay;
    those were computed while their whole segment could be seen, and stay at their positions.
    Keys are as long as the rows' longest, ``_ids`` says how many are a row's own. Padding
    stands on the right, so no row of a mask is ever empty.

    When the positions are used up, reading starts again at the first one with the prefix and the
    last quarter of what the window holds; only these are computed a second time.
    """

    _cache: Any
    _ids: list[list[int]]
    """What is in the cache, a row a text."""
    _last: list[list[int]]
    """What was read last and not decided about: at the end of the cache, padded."""
    _next: torch.Tensor
    """The position of each row's next token."""
    _expected: torch.Tensor
    """[rows, vocabulary]: ln p of each row's next token."""

    def __init__(self, source: CausalModel, prefix: Sequence[int], window: int) -> None:
        """Read a prefix (the first special token, a question): it is never forgotten."""
        self._source = source
        self._prefix = list(prefix)
        self._window = window
        self._start([self._prefix])

    def repeat(self, rows: int) -> Reading:
        """Return a copy with so many rows, each with what this one's only row has read."""
        from transformers import DynamicCache

        many = copy(self)
        many._cache = DynamicCache()
        for at, layer in enumerate(self._cache.layers):
            pair = (part.repeat(rows, 1, 1, 1) for part in (layer.keys, layer.values))
            many._cache.update(*pair, at)
        many._ids = [[*self._ids[0]] for _ in range(rows)]
        many._next = self._next.repeat(rows)
        many._expected = self._expected.repeat(rows, 1)
        return many

    def read(self, rows: Sequence[Sequence[int]]) -> list[list[float]]:
        """Return -ln p of each token given all that is remembered, in nats; a row a text.

        Each row needs a token. Those read before and not forgotten stay.
        """
        self._make_room(rows)
        return self._forward(rows)

    def skim(self, rows: Sequence[Sequence[int]]) -> None:
        """Read without asking how likely the tokens were, which saves the time of it."""
        self._make_room(rows)
        self._forward(rows, is_asked=False)

    def forget(self, kept: Sequence[Sequence[bool]]) -> None:
        """Keep these tokens of the last ones; of all, with the prefix, the last ``window``."""
        import torch

        past = self._columns - max(map(len, self._last))
        columns: list[list[int]] = []
        for ids, new, flags in zip(self._ids, self._last, kept, strict=True):
            own = [*range(len(ids)), *(past + i for i, keep in enumerate(flags) if keep)]
            ids += [token for token, keep in zip(new, flags, strict=True) if keep]
            fixed, over = len(self._prefix), max(len(own) - self._window, 0)
            del own[fixed : fixed + over], ids[fixed : fixed + over]
            columns.append(own)
        self._last = []
        width = max(map(len, columns))
        if all(own == list(range(self._columns)) for own in columns):
            return
        at = torch.tensor([own + [0] * (width - len(own)) for own in columns])
        at = at.to(self._next.device)[:, None, :, None]
        for layer in self._cache.layers:
            layer.keys = layer.keys.take_along_dim(at, 2)
            layer.values = layer.values.take_along_dim(at, 2)

    def select(self, rows: Sequence[int]) -> None:
        """Let all other rows leave, once what was read last has been kept or forgotten."""
        import torch

        at = torch.tensor(rows, device=self._next.device)
        self._cache.batch_select_indices(at)
        self._ids = [self._ids[row] for row in rows]
        self._next, self._expected = self._next[at], self._expected[at]

    @property
    def _columns(self) -> int:
        return int(self._cache.get_seq_length())

    def _make_room(self, rows: Sequence[Sequence[int]]) -> None:
        if self._last:
            self.forget([[True] * len(row) for row in self._last])
        if int(self._next.max()) + max(map(len, rows)) > self._source.num_positions:
            tail = max(self._window // 4, 1)
            fixed = len(self._prefix)
            kept = [ids[max(len(ids) - tail, fixed) :] for ids in self._ids]
            self._start([[*self._prefix, *ids] for ids in kept])

    def _start(self, rows: Sequence[Sequence[int]]) -> None:
        import torch
        from transformers import DynamicCache

        self._cache = DynamicCache()
        self._ids = [[] for _ in rows]
        self._next = torch.zeros(len(rows), dtype=torch.long, device=self._source.model.device)
        self._forward(rows, is_asked=False)
        prefix, self._prefix = self._prefix, []
        self.forget([[True] * len(row) for row in rows])
        self._prefix = prefix

    def _forward(self, rows: Sequence[Sequence[int]], is_asked: bool = True) -> list[list[float]]:
        import torch

        width = max(map(len, rows))
        device = self._next.device
        ids = torch.tensor([[*row, *[0] * (width - len(row))] for row in rows], device=device)
        lengths = torch.tensor([len(row) for row in rows], device=device)
        known = torch.tensor([len(own) for own in self._ids], device=device)
        past = torch.arange(self._columns, device=device) < known[:, None]
        present = torch.arange(width, device=device) < lengths[:, None]
        positions = self._next[:, None] + torch.arange(width, device=device)
        ends = torch.tensor(sorted({len(row) - 1 for row in rows}), device=device)
        with torch.inference_mode():
            logits = self._source.model(
                input_ids=ids,
                attention_mask=torch.cat([past, present], 1).long(),
                position_ids=positions.clamp(max=self._source.num_positions - 1),
                use_cache=True,
                logits_to_keep=0 if is_asked else ends,  # 0: all of them
                **{self._source.cache_name: self._cache},
            ).logits
            surprise = self._surprise(logits, ids) if is_asked else torch.zeros(ids.shape)
            last = lengths - 1 if is_asked else torch.searchsorted(ends, lengths - 1)
            at = torch.arange(len(rows), device=device)
            self._expected = logits[at, last].float().log_softmax(-1)
        self._next = self._next + lengths
        self._last = [list(row) for row in rows]
        values: list[list[float]] = cast("Any", surprise).tolist()
        return [line[: len(row)] for line, row in zip(values, rows, strict=True)]

    def _surprise(self, logits: Any, ids: torch.Tensor) -> torch.Tensor:
        """Return [rows, columns] of -ln p: the first from before, the others from these logits."""
        import torch

        first = -self._expected.gather(1, ids[:, :1])
        if ids.shape[1] == 1:
            return first.cpu()
        rows = logits[:, :-1].flatten(0, 1)
        norms = torch.cat([part.float().logsumexp(-1) for part in rows.split(_CHUNK)])
        own = rows.gather(1, ids[:, 1:].reshape(-1, 1)).squeeze(1).float()
        rest: Any = (norms - own).view(len(ids), -1)
        return torch.cat([first, rest], 1).cpu()
