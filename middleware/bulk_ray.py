"""Ray Data as the hands of a bulk run: an actor pool over shards."""

from __future__ import annotations

import gc
import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .errors import BackendError, HeadraceError

MAX_RETRIES = 5  # of a shard whose worker died; a row that kills every worker must end some time
MAX_STARTS = 3
_MAX_BLOCKS = 2000


def need_ray() -> Any:
    """Return the module ``ray`` with ``ray.data``. Raises HeadraceError without it."""
    try:
        import ray
        import ray.data  # pyright: ignore[reportUnusedImport]
    except ImportError as error:
        raise HeadraceError("bulk compression needs Ray: pip install 'headrace[ray]'") from error
    return ray


def start(ray: Any, **options: Any) -> None:
    """Call ``ray.init``, again if need be: Ray waits 30 s, and a busy machine may need more.

    Raises BackendError when it does not come up.
    """
    for attempt in range(1, MAX_STARTS + 1):
        try:
            ray.init(**options)
            return
        except Exception as error:  # Ray's own word for a start that took too long
            ray.shutdown()
            if attempt == MAX_STARTS:
                raise BackendError(
                    f"Ray did not start in {attempt} attempts: {_last_line(error)}; start a cluster"
                    " (ray start --head) and set RAY_ADDRESS=auto to see why",
                    retryable=True,
                ) from error


def run_shards(
    folder: Path,
    numbers: Sequence[int],
    options: Mapping[str, Any],
    *,
    concurrency: int | None,
    num_gpus: float,
    on_done: Callable[[int], None],
) -> None:
    """Have shards of the run in ``folder`` done by ``concurrency`` actors of one core each.

    Uses the cluster that the process is connected to, that of RAY_ADDRESS, or else starts one on
    this machine and stops it at the end. ``on_done`` is called with the rows of what was just
    done. A worker that dies is replaced and its shard done again, ``MAX_RETRIES`` times at most.
    Raises the workers' HeadraceError, and BackendError for anything else that they died of.
    """
    ray = need_ray()
    from .bulk_worker import Worker

    rows: Any = None
    done: Any = None
    is_ours = not ray.is_initialized()
    if is_ours:
        start(ray, log_to_driver=False, logging_level=logging.WARNING)
        logging.getLogger("ray.data").setLevel(logging.WARNING)
        logging.getLogger("ray.data._internal.progress").setLevel(logging.ERROR)
    try:
        size = concurrency or _num_slots(ray.cluster_resources(), num_gpus)
        shards = ray.data.from_items(
            [{"number": number} for number in numbers],
            override_num_blocks=min(len(numbers), _MAX_BLOCKS),
        )
        shards.context.enable_progress_bars = False
        shards.context.print_on_execution_start = False
        done = shards.map_batches(
            Worker,
            batch_size=1,
            fn_constructor_kwargs={"folder": str(folder), "options": options},
            compute=ray.data.ActorPoolStrategy(size=min(size, len(numbers))),
            num_cpus=1,
            num_gpus=num_gpus or None,
            ray_remote_args_fn=_remote_args,
        )
        rows = iter(done.iter_rows())
        for row in rows:
            on_done(row["rows"] + row["bad"])
    except ray.exceptions.RayError as error:
        raise _translated(error) from error
    finally:
        # Only they hold the pool, which goes with them and frees its cores; the traceback of an
        # error would keep them in this frame.
        rows = done = None
        gc.collect()
        if is_ours:
            ray.shutdown()


def _remote_args() -> dict[str, Any]:
    return {"max_task_retries": MAX_RETRIES}


def _num_slots(resources: Mapping[str, float], num_gpus: float) -> int:
    slots = resources.get("GPU", 0) / num_gpus if num_gpus else resources.get("CPU", 1)
    return max(1, int(slots))


def _translated(error: BaseException) -> HeadraceError:
    """Return what a worker said, else one line about how it ended."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, HeadraceError):
            return seen
        seen = getattr(seen, "cause", None) or seen.__cause__
    return BackendError(
        f"Ray gave up: {_last_line(error)}; what is done is kept, run the same again",
        retryable=True,
    )


def _last_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[-1].strip()[:300] if lines else type(error).__name__
