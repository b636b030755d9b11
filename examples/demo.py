"""The main job on real input: a question and a folder of documents go through the whole race.

Rerank, compress, plan, constrain and dispatch to a real (small) language model in process.
"""

import sys
from pathlib import Path
from typing import Literal

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from headrace import (
    Compress,
    Constrain,
    Finished,
    Middleware,
    Pipeline,
    Plan,
    Report,
    Request,
    Rerank,
    TextDelta,
    constraint,
)
from headrace.backends import make_backend
from headrace.middleware.files import read_documents

QUESTION = "How much of the water's power does an overshot wheel deliver?"
LIST_QUESTION = "What are the main parts of a water mill? Describe each of them."
FOLDER = Path(__file__).parent / "documents"


class Wheel(BaseModel):
    """What we want to know, as JSON."""

    wheel: Literal["overshot", "undershot", "breastshot"]
    percent: int


def print_report(report: Report) -> None:
    """Print a row a stage."""
    table = Table(box=None, padding=(0, 2, 0, 0), title="report", title_justify="left")
    for column in ("stage", "what it did", "tokens", "seconds"):
        table.add_column(column)
    for row in report.stages:
        tokens = "" if row.tokens_in is None else f"{row.tokens_in} -> {row.tokens_out}"
        table.add_row(row.stage, row.decision, tokens, f"{row.seconds:.2f}")
    Console().print(table)


def show(pipeline: Pipeline, request: Request) -> None:
    """Stream one answer and print what each stage did."""
    for event in pipeline.stream_sync(request):
        if isinstance(event, TextDelta):
            print(event.text, end="", flush=True)
        elif isinstance(event, Finished):
            print("\n")
            if event.response.parsed is not None:
                print(f"parsed: {event.response.parsed!r}\n")
            print_report(event.response.report)


def main() -> None:
    """Run the demo."""
    documents = tuple(
        read_documents([str(FOLDER)], on_skip=lambda why: print(why, file=sys.stderr))
    )
    backend = make_backend(None)
    with Pipeline([], backend) as engine:
        tokenizer = engine.blocking(backend.capabilities()).tokenizer
        stages: list[Middleware] = [
            Rerank(top_k=3),
            Compress(0.6, tokenizer=tokenizer),
            Plan("auto"),
            Constrain(),
        ]
        pipeline = Pipeline(stages, engine.dispatcher, loop=engine.loop)

        print(f"question: {QUESTION}\n")
        used = engine.blocking(Rerank(top_k=3).transform(Request.of(QUESTION, documents=documents)))
        print(f"documents used, of {len(documents)}:")
        for document in used.documents:
            print(f"  {document.score:.3f}  {document.id}")
        print("\nanswer:")
        show(pipeline, Request.of(QUESTION, documents=documents))

        print("\nthe same as JSON, constrained while it is decoded:")
        asked = f"{QUESTION} Answer as JSON."
        show(pipeline, Request.of(asked, documents=documents, constraint=constraint(Wheel)))

        print(f"\nquestion: {LIST_QUESTION}\n\nanswer, planned and written in parallel:")
        show(pipeline, Request.of(LIST_QUESTION))


main()
