"""The rows that share forward passes, and the keys and values of what they have read.

A pass reads a block of columns. A row's new tokens are at the right of the block, so that the last
column holds everybody's newest; what a row does not use is padding. Positions are explicit and
padding is masked, so that neither changes anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from inspect import signature
from typing import TYPE_CHECKING, Any, cast

from .prefixes import Prefix, PrefixStore
from .row import Row

if TYPE_CHECKING:
    import torch

_WIDEST = 64  # tokens of a row in one pass, its prompt apart
# A pass that reads n tokens takes about as long as _FREE + n: weights are read once whatever n is.
_FREE = {"cpu": 16, "cuda": 256}
_HOPE = 0.75  # share of guesses that turn out right
_WASTE = 0.25  # share of padding in the cache from which it is rewritten without
_WASTE_COLUMNS = 64


class Batch:
    """Rows of one model. ``mask``: [rows, columns], 1 where a column holds a token of the row."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.rows: list[Row] = []
        names = signature(model.forward).parameters  # "past_key_values" before transformers 5.24
        self._cache_name = "cache" if "cache" in names else "past_key_values"
        self._cache: Any = self._empty()
        self._mask: torch.Tensor | None = None

    @property
    def is_plain(self) -> bool:
        """Whether every layer keeps every column: only then rows may differ in length or join.

        Layers with a sliding window or a state of their own count columns, padding included.
        """
        from transformers.cache_utils import DynamicLayer

        return all(type(layer) is DynamicLayer for layer in self._cache.layers)

    def join(self, rows: Sequence[Row], store: PrefixStore | None = None) -> list[torch.Tensor]:
        """Read the rows' prompts and let them in; returns the logits of each, as ``step`` does.

        What the ``store`` knows of a prompt is not read again, and what is new is added to it.
        """
        if self.rows:
            fresh = Batch(self.model)
            logits = fresh.join(rows, store)
            self._merge(fresh)
            return logits
        self._cache, self._mask = self._empty(), None
        self.rows = [*rows]
        if store is not None and self.is_plain:
            self._recall([store.find(row.prompt) for row in rows])
        logits = self._forward([row.unread() for row in rows])
        if store is not None and self.is_plain:
            self._remember(store)
        return logits

    def step(self) -> list[torch.Tensor]:
        """Read each row's newest tokens and its draft.

        Returns for each row logits [1 + len(draft), vocabulary], or [0, vocabulary] for a row
        that has more certain tokens than one pass reads.
        """
        width = self._width() if self.is_plain else 1
        blocks = [row.unread(width) for row in self.rows]
        for row, block in zip(self.rows, blocks, strict=True):
            row.draft = row.draft[: width - len(block)]
        return self._forward(blocks)

    def _width(self) -> int:
        """Return how many columns to read: those that bring most tokens in the time they take.

        The rows share the columns, so that what one row alone has to read costs the others too.
        """
        wants = [(len(row.unread()), len(row.draft)) for row in self.rows]
        free = _FREE.get(self.model.device.type, _FREE["cuda"])

        def gain(width: int) -> float:
            read = sum(
                min(certain, width) + _HOPE * min(max(width - certain, 0), guessed)
                for certain, guessed in wants
            )
            return read / (free + width * len(wants))

        return max(range(1, min(max(map(sum, wants)), _WIDEST) + 1), key=gain)

    def settle(self, rejected: Sequence[int]) -> None:
        """Forget the last columns of each row: guesses that it did not keep."""
        if self._mask is not None:
            columns = self._mask.shape[1]
            for row_mask, number in zip(self._mask, rejected, strict=True):
                row_mask[columns - number :] = 0

    def keep(self, rows: Sequence[Row]) -> None:
        """Let all other rows leave, and rewrite the cache when much of it is padding."""
        import torch

        if len(rows) < len(self.rows):
            wanted = {id(row) for row in rows}
            indices = [at for at, row in enumerate(self.rows) if id(row) in wanted]
            self.rows = [self.rows[at] for at in indices]
            if not indices:
                self._cache, self._mask = self._empty(), None
                return
            mask = cast("torch.Tensor", self._mask)
            select = torch.tensor(indices, device=mask.device)
            self._cache.batch_select_indices(select)
            self._mask = mask[select]
        self._compact()

    def _empty(self) -> Any:
        from transformers import DynamicCache

        return DynamicCache(config=self.model.config)

    def _forward(self, blocks: Sequence[list[int]]) -> list[torch.Tensor]:
        import torch

        drafts: list[list[int]] = []
        for row, block in zip(self.rows, blocks, strict=True):
            if not self.is_plain or row.num_read + len(block) < row.length:
                row.draft = []
            drafts.append(row.draft)
        width = max(len(b) + len(d) for b, d in zip(blocks, drafts, strict=True))
        ids = torch.zeros(len(blocks), width, dtype=torch.long)
        positions = torch.zeros(len(blocks), width, dtype=torch.long)
        fresh = torch.zeros(len(blocks), width, dtype=torch.long)
        for at, (row, block, draft) in enumerate(zip(self.rows, blocks, drafts, strict=True)):
            first = width - len(block) - len(draft)
            ids[at, first:] = torch.tensor(block + draft)
            positions[at, first:] = torch.arange(row.num_read, row.num_read + width - first)
            fresh[at, first:] = 1
            row.num_read += len(block)
            row.num_passes += 1
        device = self.model.device
        fresh = fresh.to(device)
        self._mask = fresh if self._mask is None else torch.cat([self._mask, fresh], dim=1)
        wanted = 1 + max(len(draft) for draft in drafts)
        output = self.model(
            input_ids=ids.to(device),
            attention_mask=self._mask,
            position_ids=positions.to(device),
            use_cache=True,
            logits_to_keep=wanted,
            **{self._cache_name: self._cache},
        )
        logits = cast("torch.Tensor", output.logits[:, -wanted:].float())
        return [
            logits[at, wanted - 1 - len(row.draft) :]
            if row.num_read == row.length
            else logits[at, :0]
            for at, row in enumerate(self.rows)
        ]

    def _recall(self, found: Sequence[Prefix | None]) -> None:
        """Begin with the keys and values that are known of each row's prompt."""
        import torch

        width = max((prefix.length for prefix in found if prefix), default=0)
        if width == 0:
            return
        layers = next(prefix for prefix in found if prefix).layers
        device = self.model.device
        self._mask = torch.zeros(len(found), width, dtype=torch.long, device=device)
        for at, (row, prefix) in enumerate(zip(self.rows, found, strict=True)):
            if prefix is not None:
                row.num_read = row.num_cached = prefix.length
                self._mask[at, width - prefix.length :] = 1
        for number, layer in enumerate(layers):
            both: list[torch.Tensor] = []
            for which, like in enumerate(layer):
                shape = (len(found), like.shape[0], width, like.shape[2])
                part = torch.zeros(shape, dtype=like.dtype, device=device)
                for at, prefix in enumerate(found):
                    if prefix is not None:
                        known = prefix.layers[number][which][:, : prefix.length]
                        part[at, :, width - prefix.length :] = known
                both.append(part)
            self._cache.update(*both, number)

    def _remember(self, store: PrefixStore) -> None:
        """Put the prompts that have something new into the store."""
        mask = cast("torch.Tensor", self._mask)
        for at, row in enumerate(self.rows):
            if not store.knows(row.prompt):
                columns = mask[at].nonzero()[: len(row.prompt), 0]
                layers = [
                    (layer.keys[at][:, columns], layer.values[at][:, columns])
                    for layer in self._cache.layers
                ]
                store.add(row.prompt, layers)

    def _merge(self, other: Batch) -> None:
        """Take the rows of another batch, the shorter cache padded on the left."""
        import torch

        ours, theirs = cast("torch.Tensor", self._mask), cast("torch.Tensor", other._mask)
        width = max(ours.shape[1], theirs.shape[1])
        pad = torch.nn.functional.pad
        self._mask = torch.cat([pad(mask, (width - mask.shape[1], 0)) for mask in (ours, theirs)])
        for mine, new in zip(self._cache.layers, other._cache.layers, strict=True):
            for name in ("keys", "values"):
                parts = [getattr(layer, name) for layer in (mine, new)]
                parts = [pad(part, (0, 0, width - part.shape[2], 0)) for part in parts]
                setattr(mine, name, torch.cat(parts))
        self.rows += other.rows

    def _compact(self) -> None:
        """Move every row's columns to the right and cut those that nobody needs any more."""
        mask = cast("torch.Tensor", self._mask)
        columns = mask.shape[1]
        longest = int(mask.sum(-1).max())
        if columns - longest < max(_WASTE_COLUMNS, int(_WASTE * columns)) or not self.is_plain:
            return
        order = mask.argsort(dim=1, stable=True)[:, columns - longest :]  # padding comes first
        self._mask = mask.gather(1, order)
        for layer in self._cache.layers:
            heads, size = layer.keys.shape[1], layer.keys.shape[3]
            index = order[:, None, :, None].expand(-1, heads, -1, size)
            layer.keys = layer.keys.gather(2, index)
            size = layer.values.shape[3]
            index = order[:, None, :, None].expand(-1, heads, -1, size)
            layer.values = layer.values.gather(2, index)
