"""A process of its own for what may take long, take much memory, or end the process.

``python -m headrace.backends.decoding.worker`` reads one task as JSON and writes one line of JSON,
then bytes if the task has any.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from copy import copy
from typing import Any, cast

from ...middleware.errors import HeadraceError, InvalidRequest, UnsupportedConstraint
from ...middleware.types import Constraint
from .engines.base import Vocabulary

SECONDS = 10.0  # of wall-clock time, the start of the process included
MEGABYTES = 2_048  # of address space


def try_out(
    vocabulary: Vocabulary,
    constraint: Constraint,
    *,
    seconds: float = SECONDS,
    megabytes: int = MEGABYTES,
) -> None:
    """Compile a constraint with llguidance and compute its first mask, elsewhere.

    Raises what compiling raises, and UnsupportedConstraint when it does not end within the limits.
    """
    backend = copy(vocabulary.tokenizer.backend_tokenizer)
    backend.no_padding()
    backend.no_truncation()
    task = {
        "task": "compile",
        "tokenizer": backend.to_str(),
        "width": vocabulary.width,
        "eos": vocabulary.eos,
        "kind": constraint.kind,
        "spec": constraint.spec,
    }
    _run(task, seconds, megabytes)


def compile_index(
    pattern: str,
    pieces: dict[str, list[int]],
    width: int,
    *,
    seconds: float = SECONDS,
    megabytes: int = MEGABYTES,
) -> bytes:
    """Return outlines_core's index of a pattern over ``pieces`` (hexadecimal text to ids)."""
    task = {"task": "index", "pattern": pattern, "pieces": pieces, "width": width}
    return _run(task, seconds, megabytes)


def _run(task: dict[str, Any], seconds: float, megabytes: int) -> bytes:
    task = {**task, "megabytes": megabytes, "seconds": seconds}
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "OMP_NUM_THREADS": "1",
        "RAYON_NUM_THREADS": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-m", __name__],
            input=json.dumps(task).encode(),
            capture_output=True,
            timeout=seconds,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UnsupportedConstraint(
            f"compiling the constraint takes longer than {seconds:g} s; simplify it or lower its "
            "bounds"
        ) from None
    head, _, body = done.stdout.partition(b"\n")
    if done.returncode != 0 or not head:
        raise UnsupportedConstraint(
            f"compiling the constraint needs more than {megabytes} MB or {seconds:g} s, or ends "
            f"the process (status {done.returncode}); simplify it or lower its bounds"
        )
    answer: dict[str, str] = json.loads(head)
    if "error" in answer:
        kind = InvalidRequest if answer["error"] == "InvalidRequest" else UnsupportedConstraint
        raise kind(answer["message"])
    return body


def main() -> None:
    """Do the task on standard input."""
    task = json.loads(sys.stdin.buffer.read())
    _limit(task["megabytes"], task["seconds"])
    body = b""
    try:
        if task["task"] == "index":
            body = _index(task)
        else:
            _compile(task)
        answer: dict[str, str] = {}
    except HeadraceError as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    except ValueError as error:
        answer = {"error": "InvalidRequest", "message": f"{' '.join(str(error).split()):.200}"}
    sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n" + body)


def _limit(megabytes: int, seconds: float) -> None:
    try:
        import resource
    except ImportError:  # Windows: the wall-clock limit alone
        return
    size = megabytes * 2**20
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _compile(task: dict[str, Any]) -> None:
    from llguidance import LLTokenizer

    from .engines.llguidance import LLGuidance

    ll = LLTokenizer(task["tokenizer"], n_vocab=task["width"], eos_token=task["eos"])
    spec = task["spec"] if isinstance(task["spec"], str) else tuple(task["spec"])
    vocabulary = Vocabulary(None, ll, task["width"], tuple(task["eos"]))
    LLGuidance(vocabulary).compile(Constraint(task["kind"], spec)).start().mask()


def _index(task: dict[str, Any]) -> bytes:
    import outlines_core

    library = cast("Any", outlines_core)
    pieces = {bytes.fromhex(text): ids for text, ids in task["pieces"].items()}
    vocabulary = library.Vocabulary(task["width"], pieces)  # an end that no token stands for
    index = library.Index(task["pattern"], vocabulary)
    return cast("bytes", index.__reduce__()[1][0])


if __name__ == "__main__":
    main()
