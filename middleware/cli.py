"""The ``headrace`` command: text to stdout, everything else to stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from .cli_compress import File, Json, compress, recover
from .cli_constrain import constrain_app
from .cli_context import context
from .cli_engines import serve_engine
from .cli_plan import MaxNodes, Outline, Race, Seams, Strategy, Width, plan
from .cli_roofline import roofline
from .cli_serve import serve
from .errors import HeadraceError, InvalidRequest, Truncated
from .terminal import print_json, print_table, print_text, say

EXIT_FAILURE, EXIT_USAGE = 1, 2
MANY = 500  # passages that take more than a few seconds to rank

app = typer.Typer(
    name="headrace",
    epilog="--debug, anywhere, shows the traceback of an error.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def main() -> None:
    """Run the command line; exit 0 if all went well, 1 on failure, 2 on bad usage."""
    debug = "--debug" in sys.argv
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        app(arguments)
    except HeadraceError as error:
        if debug:
            raise
        say(f"error: {error}")
        if isinstance(error, Truncated) and error.text:
            say(f"what there is of it:\n{error.text}")
        sys.exit(EXIT_USAGE if isinstance(error, InvalidRequest) else EXIT_FAILURE)
    except BrokenPipeError:  # the reader has enough: head, less
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if debug:
            raise
        say(f"error: cannot write the output: {error.strerror}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(EXIT_FAILURE)


def _version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        print_text(f"headrace {version('headrace')}\n")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")
    ] = False,
) -> None:
    """Rerank, compress, plan, constrain and batch in front of a language model's engine."""


app.command()(compress)
app.command()(context)
app.command()(recover)
app.add_typer(constrain_app, name="constrain")
app.command()(serve_engine)
app.command()(serve)
app.command()(roofline)
app.command()(plan)


@app.command()
def rerank(
    question: Annotated[str, typer.Option(help="What the documents should answer.")],
    file: File = "-",
    top_k: Annotated[int | None, typer.Option(help="How many to keep.")] = None,
    method: Annotated[str, typer.Option(help="auto, bm25, bi-encoder, mini, or a model.")] = "auto",
    as_json: Json = False,
) -> None:
    """Rank JSON Lines documents ({"id", "text", "title"?}) by how well they answer a question.

    The same lines come out with a "score", best first; at a terminal without --json, a table.
    """
    from .files import read_records, read_text, record_document, with_score
    from .sdk import rerank as rank

    records = read_records(read_text(file), "standard input" if file == "-" else file)
    if not records:
        say("note: no documents in the input")
    numbered = [replace(record_document(r), id=str(i)) for i, (_, r) in enumerate(records)]
    ranked = rank(question, numbered, top_k=top_k, method=method)
    if sys.stdout.isatty() and not as_json:
        found = [(d, records[int(d.id or 0)][1]) for d in ranked]
        rows = [(f"{d.score:.3f}", str(record.get("id", "")), d) for d, record in found]
        print_table(
            ("score", "id", "document"),
            ((score, name, (d.title or d.text)[:80]) for score, name, d in rows),
        )
        return
    for one in ranked:
        print_text(with_score(*records[int(one.id or 0)], one.score or 0.0) + "\n")


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="What to answer.")],
    documents: Annotated[
        list[str] | None, typer.Option(help="File or folder to answer from; may be repeated.")
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="transformers, or the URL of an OpenAI-compatible server.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The engine's model.")] = None,
    rate: Annotated[float | None, typer.Option(help="Compress: share of tokens to keep.")] = None,
    when: Annotated[
        Literal["always", "pays"], typer.Option(help="Compress always, or where it saves time.")
    ] = "always",
    top_k: Annotated[int | None, typer.Option(help="Passages to use.", show_default="4")] = None,
    plan: Annotated[Strategy, typer.Option(help="Write parts in parallel.")] = "auto",
    plan_when: Annotated[
        Literal["pays", "always"], typer.Option(help="Divide if predicted to pay, or always.")
    ] = "pays",
    outline: Outline = None,
    max_nodes: MaxNodes = 8,
    width: Width = 8,
    race: Race = None,
    seams: Seams = False,
    schema: Annotated[Path | None, typer.Option(help="JSON schema file for the answer.")] = None,
    regex: Annotated[str | None, typer.Option(help="Pattern that the answer matches.")] = None,
    choice: Annotated[
        list[str] | None, typer.Option(help="A possible answer; repeat for more.")
    ] = None,
    grammar: Annotated[
        Path | None, typer.Option(help="Grammar file for the answer: .lark or .gbnf.")
    ] = None,
    template: Annotated[
        str | None,
        typer.Option(help="Text with fields: {name}, {age:int}, {ok:bool}, {mood:good|bad}."),
    ] = None,
    max_tokens: Annotated[int | None, typer.Option(help="Length of the answer.")] = None,
    stream: Annotated[bool, typer.Option(help="Print the answer as it is written.")] = True,
    as_json: Json = False,
    report: Annotated[Path | None, typer.Option(help="Write an HTML report.")] = None,
) -> None:
    """Answer a question (- is stdin), from documents if any, and say what each stage did."""
    from ..backends import make_backend
    from .files import check_writable, read_documents, read_text, write_text
    from .pages import report_page
    from .pipeline import Pipeline
    from .plan import Plan
    from .sdk import engine_cost, make_request, stages
    from .types import Finished, Response, TextDelta

    constraint = _constraint(schema, regex, choice, grammar, template)
    planning = Plan(plan, max_nodes, width, tuple(outline or ()), plan_when, race, seams)
    if report is not None:
        check_writable(report)
    if question == "-":
        question = read_text("-").strip()
    if not question.strip():
        raise InvalidRequest("the question is empty; pass a text, or - and a text on stdin")
    found = read_documents(documents or (), on_skip=say)
    if len(found) > MANY:
        say(f"note: ranking {len(found)} passages, which may take a while")
    if documents and not found:
        say("note: no text in the documents; answering without them")
    request = make_request(question, documents=found, constraint=constraint, max_tokens=max_tokens)
    if found and top_k is None:
        top_k = 4
    engine = make_backend(backend, model)
    if backend in (None, "transformers") and model is None:
        say("note: answered by the embedded 135M model; --backend URL is for a real one")
    with Pipeline((), engine) as bare:
        tokenizer = bare.blocking(engine.capabilities()).tokenizer
        cost = engine_cost(engine, bare.loop) if when == "pays" else None
        chain = stages(
            request,
            rate=rate,
            when=when,
            cost=cost,
            top_k=top_k,
            plan=replace(planning, cost=cost),
            tokenizer=tokenizer,
        )
        response: Response | None = None
        # A constrained answer is shown only once it is known to keep its promise.
        with_text = stream and not as_json and constraint is None
        for event in Pipeline(chain, bare.dispatcher, loop=bare.loop).stream_sync(request):
            if isinstance(event, TextDelta) and with_text:
                print_text(event.text)
            elif isinstance(event, Finished):
                response = event.response
    if response is None:
        raise HeadraceError("the pipeline ended without an answer")
    if report is not None:
        write_text(report, report_page(request, response))
    if as_json:
        print_json(
            {
                "text": response.text,
                "parsed": _plain(response.parsed),
                "finish_reason": response.finish_reason,
                "usage": asdict(response.usage),
                "report": response.report.to_dict(),
            }
        )
        return
    print_text("\n" if with_text else f"{response.text}\n")
    if response.finish_reason == "length":
        say("note: the answer was cut by its token limit; raise --max-tokens for more")
    print_table(
        ("stage", "what it did", "tokens", "seconds"),
        (
            (
                row.stage,
                row.decision,
                "" if row.tokens_in is None else f"{row.tokens_in} -> {row.tokens_out}",
                f"{row.seconds:.2f}",
            )
            for row in response.report.stages
        ),
        to_stderr=True,
    )


@app.command()
def doctor(
    backend: Annotated[
        list[str] | None, typer.Option(help="URL of an engine to try; may be repeated.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Say what is installed, which models are found, which engines answer, and how to fix it."""
    from .doctor import examine

    checks = examine(backend or ())
    if as_json:
        print_json([asdict(check) for check in checks])
    else:
        print_table(
            ("", "kind", "name", "found", "to fix it"),
            (("ok" if c.is_ok else "--", c.kind, c.name, c.found, c.fix) for c in checks),
        )
    if not all(check.is_ok for check in checks if check.kind != "extra"):
        raise typer.Exit(EXIT_FAILURE)


def _constraint(
    schema: Path | None,
    regex: str | None,
    choice: list[str] | None,
    grammar: Path | None,
    template: str | None,
) -> Any:
    from . import constraints, grammars
    from . import template as templates

    given: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "schema": (schema, constraints.schema_file),
        "regex": (regex, constraints.regex),
        "choice": (choice or None, constraints.choice),
        "grammar": (grammar, grammars.grammar),
        "template": (template, templates.template),
    }
    asked = {name: pair for name, pair in given.items() if pair[0] is not None}
    if len(asked) > 1:
        first, second, *_ = asked
        raise InvalidRequest(f"--{first} and --{second} exclude each other; pass one")
    return next((make(value) for value, make in asked.values()), None)


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return dump(mode="json") if dump else value


if __name__ == "__main__":
    main()
