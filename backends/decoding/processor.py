"""Our automaton in other people's loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from ...middleware.types import Constraint
from .automaton import Compiler, Matcher, unpack

if TYPE_CHECKING:
    import torch


class ConstraintProcessor:
    """A logits processor for ``outlines.Generator(model, processor=...)`` and transformers.

    Every row of the batch is held to the same constraint. A row is recognised by its tokens, so
    beam search may reorder rows. Use one instance for one generation at a time.
    """

    def __init__(self, compiler: Compiler, constraint: Constraint) -> None:
        self.compiler = compiler
        self._constraint = constraint
        compiler.matcher(constraint)  # a constraint that cannot be compiled fails here
        self.reset()

    @classmethod
    def of(cls, model: Any, tokenizer: Any, constraint: Constraint) -> ConstraintProcessor:
        """Return the processor for a transformers model; reads its vocabulary (half a second)."""
        listed: int | list[int] | None = model.generation_config.eos_token_id
        ids = [tokenizer.eos_token_id, *(listed if isinstance(listed, list) else [listed])]
        width = model.get_output_embeddings().out_features
        eos = sorted({one for one in ids if one is not None})
        return cls(Compiler(tokenizer, width, eos), constraint)

    def reset(self) -> None:
        """Forget the rows: the next call starts a new generation."""
        self._prompt_length: int | None = None
        self._matchers: dict[tuple[int, ...], Matcher] = {}

    def __call__(self, input_ids: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """Return the logits with every token that the constraint forbids at minus infinity.

        ``input_ids``: [rows, length], prompt included; ``logits``: [rows, vocabulary].
        """
        import numpy as np
        import torch

        if self._prompt_length is None:
            self._prompt_length = input_ids.shape[1]
        ids = cast("list[list[int]]", cast("Any", input_ids).tolist())
        rows = [tuple(row[self._prompt_length :]) for row in ids]
        # One matcher for each distinct answer: beams that share a text share its mask.
        matchers = {answer: self._at(answer) for answer in dict.fromkeys(rows)}
        self._matchers = matchers
        width = logits.shape[1]
        allowed = np.stack([unpack(matchers[answer].mask(), width) for answer in rows])
        mask = torch.as_tensor(allowed, device=logits.device)
        return logits.masked_fill(~mask, float("-inf"))

    def _at(self, answer: tuple[int, ...]) -> Matcher:
        parent = self._matchers.pop(answer[:-1], None) if answer else None
        if parent is not None:
            parent.advance(answer[-1])
            return parent
        matcher = self.compiler.matcher(self._constraint)
        for token in answer:
            matcher.advance(token)
        return matcher
