"""transformers' own continuous batching over a paged cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from ..middleware.errors import BackendError, InvalidRequest, UnsupportedConstraint
from .decoding.engine import Entry
from .generating import Generating, Task

if TYPE_CHECKING:
    from .local import LocalModel

_TICK = 0.1  # seconds between looks at who has gone


class Paged(Generating):
    """Answers batches with transformers' ``ContinuousBatchingManager``: greedy, no constraints.

    Prompts are read in pages as long as memory allows, whatever their lengths; a row's tokens come
    as they are written. Made for GPUs with flash attention.
    """

    def check(self, entry: Entry) -> None:
        """Refuse what this path cannot do."""
        request = entry.job.request
        if request.constraint is not None:
            raise UnsupportedConstraint(
                "transformers' continuous batching takes no constraint; leave out"
                " generate={'continuous': ...}: our own loop batches continuously too"
            )
        if request.sampling.temperature:
            raise InvalidRequest(
                f"transformers' continuous batching is greedy here, got temperature"
                f"={request.sampling.temperature!r}; leave out generate={{'continuous': ...}}"
            )

    def answer(self, local: LocalModel, tasks: Sequence[Task]) -> None:
        """Write the answers of rows together."""
        import torch
        from transformers import ContinuousBatchingConfig, GenerationConfig

        try:
            paging = ContinuousBatchingConfig(**(self.options.continuous or {}))
        except (TypeError, ValueError) as error:
            raise InvalidRequest(f"generate={{'continuous': ...}}: {error!s:.200}") from error
        eos = sorted(local.eos) or [-1]
        config = cast("Any", GenerationConfig)(
            do_sample=False,
            eos_token_id=eos,
            max_new_tokens=max(task.row.max_tokens for task in tasks),
        )
        model: Any = local.model
        waiting = {str(place): task for place, task in enumerate(tasks)}
        with (
            torch.inference_mode(),
            model.continuous_batching_context_manager(
                generation_config=config, continuous_batching_config=paging, warmup=False
            ) as manager,
        ):
            for name, task in waiting.items():
                manager.add_request(
                    list(task.row.prompt),
                    request_id=name,
                    max_new_tokens=task.row.max_tokens,
                    streaming=True,
                    eos_token_id=eos,
                )
            while waiting and manager.is_running():
                self._take(manager.get_result(timeout=_TICK), waiting)
                for name in [name for name, task in waiting.items() if task.is_over]:
                    manager.cancel_request(name)
                    del waiting[name]

    def _take(self, result: Any, waiting: dict[str, Task]) -> None:
        if result is None or (task := waiting.get(result.request_id)) is None:
            return
        if result.error is not None:
            task.entry.end(BackendError(f"continuous batching failed: {result.error!s:.200}"))
            return
        new = result.generated_tokens[len(task.row.tokens) :]
        task.act(lambda: task.row.follow(new))
        if result.is_finished() and not task.is_over:
            task.close(self.options.words)
