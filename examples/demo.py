"""The main job on real input: a question and a folder of documents go through the whole race.

Rerank, compress, plan, constrain and dispatch to a real (small) language model in process.
"""

from dataclasses import replace
from pathlib import Path
from typing import Literal

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from headrace import (
    Compress,
    Constrain,
    Finished,
    Pipeline,
    Plan,
    Report,
    Request,
    Rerank,
    Sampling,
    TextDelta,
    constraint,
)
from headrace.backends import make_backend
from headrace.middleware.files import read_documents

QUESTION = "How much of the water's power does an overshot wheel deliver?"
LIST_QUESTION = "What are the benefits of regular exercise?"
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
    documents = tuple(read_documents([str(FOLDER)], on_skip=print))
    backend = make_backend(None)
    with Pipeline([Plan("auto"), Constrain()], backend) as pipeline:
        tokenizer = pipeline.blocking(backend.capabilities()).tokenizer
        request = Request.of(QUESTION, documents=documents)
        for stage in (Rerank(top_k=3), Compress(rate=0.6, tokenizer=tokenizer)):
            request = pipeline.blocking(stage.transform(request))

        print(f"question: {QUESTION}\n")
        print(f"documents used, of {len(documents)}:")
        for document in request.documents:
            print(f"  {document.score:.3f}  {document.id}")
        print(f"\nprompt tokens: {request.report.stages[-1].decision}\n\nanswer:")
        show(pipeline, replace(request, sampling=Sampling(max_tokens=60)))

        print("\nthe same as JSON, constrained while it is decoded:")
        show(pipeline, replace(request, constraint=constraint(Wheel)))

        print(f"\nquestion: {LIST_QUESTION}\n\nanswer, planned and written in parallel:")
        show(pipeline, Request.of(LIST_QUESTION, sampling=Sampling(max_tokens=300)))


main()
