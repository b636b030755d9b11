"""What ``headrace compress --ray`` takes, and what it says."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from .errors import InvalidRequest
from .terminal import print_json, say

Column = Annotated[str, typer.Option(help="With --ray: where the text is.")]
QuestionColumn = Annotated[
    str | None, typer.Option(help="With --ray: where the row's question is, if it has one.")
]
BatchSize = Annotated[
    int | None, typer.Option(help="With --ray: rows that a worker takes at a time.")
]
Concurrency = Annotated[
    int | None, typer.Option(help="With --ray: workers.", show_default="one a core")
]
BadRows = Annotated[Path | None, typer.Option(help="With --ray: file for rows without a text.")]
Resume = Annotated[
    bool, typer.Option("--resume/--no-resume", help="With --ray: go on where a run was stopped.")
]


def given_bulk(
    output: Path | None,
    column: str,
    question_column: str | None,
    batch_size: int | None,
    concurrency: int | None,
    bad_rows: Path | None,
) -> dict[str, Any]:
    """Return those of the options that were given."""
    given = {
        "output": output,
        "column": column if column != "text" else None,
        "question_column": question_column,
        "batch_size": batch_size,
        "concurrency": concurrency,
        "bad_rows": bad_rows,
    }
    return {name: value for name, value in given.items() if value is not None}


def compress_rows(file: str, *, as_json: bool, output: Path | None = None, **options: Any) -> None:
    """Compress the rows of a file, and say what came of it."""
    from .bulk import compress_dataset

    if output is None:
        raise InvalidRequest("--ray writes a file: name it with --output OUT.jsonl")
    if file == "-":
        raise InvalidRequest("--ray reads a file or a folder, not standard input; pass its name")
    report = compress_dataset(file, output, **options)
    if as_json:
        print_json({**asdict(report), "rate": report.rate})
        return
    if report.resumed_rows:
        say(f"{report.resumed_rows} rows had been done by an earlier run")
    say(
        f"{report.rows} rows, {report.tokens_in} -> {report.tokens_out} tokens"
        f" ({report.rate:.0%}) in {report.seconds:.1f} s: {report.target}"
    )
    if report.bad_rows:
        say(f"note: {report.bad_rows} rows could not be compressed: {report.bad_rows_file}")
