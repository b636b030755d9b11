"""The batched decode loop.

Rows of one batch share every forward pass. They are padded on the left, so that the last column
holds everybody's newest token; positions are explicit, so that padding changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from inspect import signature
from typing import TYPE_CHECKING, Any, cast

from ...middleware.errors import HeadraceError
from .row import Row

if TYPE_CHECKING:
    import torch
    from transformers import DynamicCache

_TRIM_COLUMNS = 64  # of padding that every row left in the batch has: then the cache is cut


@dataclass(slots=True)
class Batch:
    """The rows that are decoded together, and the keys and values of what they have read.

    ``mask``: [rows, columns], 1 where a column of the cache holds one of the row's tokens.
    """

    model: Any
    cache_name: str
    cache: DynamicCache
    mask: torch.Tensor
    rows: list[Row] = field(default_factory=list[Row])

    @classmethod
    def start(cls, model: Any, rows: Sequence[Row]) -> tuple[Batch, torch.Tensor]:
        """Read the prompts; returns the batch and its first logits, [rows, vocabulary]."""
        import torch
        from transformers import DynamicCache

        width = max(len(row.prompt) for row in rows)
        ids = torch.zeros(len(rows), width, dtype=torch.long)
        mask = torch.zeros(len(rows), width, dtype=torch.long)
        for at, row in enumerate(rows):
            ids[at, width - len(row.prompt) :] = torch.tensor(row.prompt)
            mask[at, width - len(row.prompt) :] = 1
        names = signature(model.forward).parameters  # "past_key_values" before transformers 5.24
        name = "cache" if "cache" in names else "past_key_values"
        cache = DynamicCache(config=model.config)
        batch = cls(model, name, cache, mask.to(model.device), [*rows])
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        return batch, batch._forward(ids, positions)

    def step(self) -> torch.Tensor:
        """Read each row's newest token; returns the next logits, [rows, vocabulary]."""
        import torch

        ids = torch.tensor([[row.tokens[-1]] for row in self.rows])
        positions = torch.tensor([[row.length - 1] for row in self.rows])
        self.mask = torch.cat([self.mask, self.mask.new_ones(len(self.rows), 1)], dim=1)
        return self._forward(ids, positions)

    def keep(self, rows: Sequence[Row]) -> None:
        """Let all other rows leave, and cut padding columns that nobody needs any more."""
        import torch

        if len(rows) < len(self.rows):
            wanted = {id(row) for row in rows}
            indices = [at for at, row in enumerate(self.rows) if id(row) in wanted]
            self.rows = [self.rows[at] for at in indices]
            if not indices:
                return
            select = torch.tensor(indices, device=self.mask.device)
            self.cache.batch_select_indices(select)
            self.mask = self.mask[select]
            self._trim()

    def _trim(self) -> None:
        columns = int(self.mask.argmax(-1).min())  # where the longest row begins
        layers = cast("list[Any]", self.cache.layers)
        if columns < _TRIM_COLUMNS or any(layer.is_sliding for layer in layers):
            return
        self.mask = self.mask[:, columns:]
        for layer in layers:
            layer.keys = layer.keys[:, :, columns:].contiguous()
            layer.values = layer.values[:, :, columns:].contiguous()

    def _forward(self, ids: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        device = self.mask.device
        output = self.model(
            input_ids=ids.to(device),
            attention_mask=self.mask,
            position_ids=positions.to(device),
            use_cache=True,
            logits_to_keep=1,
            **{self.cache_name: self.cache},
        )
        return cast("torch.Tensor", output.logits[:, -1].float())


def decode(
    model: Any, rows: Sequence[Row], is_wanted: Callable[[Row], bool]
) -> Iterator[tuple[Row, str | HeadraceError]]:
    """Write all answers together; yields each row with its next text, or the error that ends it.

    A row is done when its ``finish_reason`` is set (its last text may be empty). ``is_wanted`` is
    asked for each row before each forward pass; a row that is not wanted leaves silently.
    """
    rows = [row for row in rows if is_wanted(row)]
    if not rows:
        return
    batch, logits = Batch.start(model, rows)
    while True:
        going: list[Row] = []
        for row, row_logits in zip(batch.rows, logits, strict=True):
            try:
                delta = row.append(row.choose(row_logits))
            except HeadraceError as error:
                yield row, error
                continue
            if delta or row.finish_reason:
                yield row, delta
            if not row.finish_reason:
                going.append(row)
        batch.keep([row for row in going if is_wanted(row)])
        if not batch.rows:
            return
        logits = batch.step()
