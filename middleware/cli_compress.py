"""The commands ``headrace compress`` and ``headrace recover``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from .cli_bulk import (
    BadRows,
    BatchSize,
    Column,
    Concurrency,
    QuestionColumn,
    Resume,
    compress_rows,
    given_bulk,
)
from .errors import InvalidRequest
from .terminal import print_json, print_text, progress_bar, say

File = Annotated[str, typer.Argument(metavar="[FILE|-]", help="A text file; - is stdin.")]
Json = Annotated[bool, typer.Option("--json", help="Machine-readable output.")]


def compress(
    file: File = "-",
    rate: Annotated[float | None, typer.Option(help="Share of tokens to keep, 0 to 1.")] = None,
    target_tokens: Annotated[int | None, typer.Option(help="Tokens to keep at most.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Least importance, 0 to 1.")] = None,
    quality: Annotated[
        float | None, typer.Option(help="Share of all importance to keep, 0 to 1.")
    ] = None,
    question: Annotated[str | None, typer.Option(help="What the text will be asked.")] = None,
    compressor: Annotated[str, typer.Option(help="auto, lexical, mini, or a model.")] = "auto",
    tokenizer: Annotated[
        str | None, typer.Option(help="What counts the tokens: a Hugging Face name or folder.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Pattern of text that stays; may be repeated.")
    ] = None,
    force_keep: Annotated[
        list[str] | None, typer.Option(help="Word or string that stays; may be repeated.")
    ] = None,
    force_drop: Annotated[
        list[str] | None, typer.Option(help="Word or string that goes; may be repeated.")
    ] = None,
    drop_consecutive: Annotated[
        bool, typer.Option("--drop-consecutive", help="Of repeated --force-keep words keep one.")
    ] = False,
    keep_digits: Annotated[
        bool, typer.Option("--keep-digits", help="Keep every word with a digit.")
    ] = False,
    segments: Annotated[
        bool, typer.Option("--segments", help="Read <headrace rate=0.4>..</headrace> as markup.")
    ] = False,
    rule: Annotated[
        list[str] | None,
        typer.Option(help="JSON by key: items[*].body=0.3, =keep or =drop; may be repeated."),
    ] = None,
    fold: Annotated[bool, typer.Option(help="Fold repeated log lines with a count.")] = True,
    as_json: Json = False,
    html: Annotated[Path | None, typer.Option(help="Write what was cut as an HTML page.")] = None,
    ray: Annotated[
        bool, typer.Option("--ray", help="Each row of a JSON Lines or Parquet file, with Ray.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="With --ray: the file to write.")
    ] = None,
    column: Column = "text",
    question_column: QuestionColumn = None,
    batch_size: BatchSize = None,
    concurrency: Concurrency = None,
    bad_rows: BadRows = None,
    resume: Resume = True,
) -> None:
    """Make a text shorter by dropping what matters least (half of it, unless told otherwise)."""
    only_ray = given_bulk(output, column, question_column, batch_size, concurrency, bad_rows)
    if ray:
        from .cli_rules import plain_rules

        if html is not None:
            raise InvalidRequest("--html shows one text; leave it out with --ray")
        return compress_rows(
            file,
            as_json=as_json,
            resume=resume,
            **only_ray,
            rate=rate,
            target_tokens=target_tokens,
            threshold=threshold,
            quality=quality,
            question=question,
            compressor=compressor,
            tokenizer=tokenizer,
            keep=keep or (),
            force_keep=force_keep or (),
            force_drop=force_drop or (),
            drop_consecutive=drop_consecutive,
            keep_digits=keep_digits,
            segments=segments,
            json=plain_rules(rule),
            fold=fold,
        )
    if only_ray or not resume:
        name = next(iter(only_ray), "no_resume").replace("_", "-")
        raise InvalidRequest(f"--{name} goes with --ray; without it the text goes to stdout")
    from ..compressors import Compressor, to_html
    from . import parts
    from .cli_rules import read_rules
    from .files import check_writable, read_text, write_text

    budget = parts.budget(rate, target_tokens, threshold, quality)
    rules = read_rules(rule)
    if html is not None:
        check_writable(html)
    text = read_text(file)
    if not text:
        say(f"note: {'standard input' if file == '-' else file} is empty; nothing to compress")
    if "<headrace" in text and not segments:
        say("note: the text has <headrace ...> tags, which only --segments reads")
    for wish in (*(force_keep or ()), *(force_drop or ())):
        if wish not in text:
            say(f"note: {wish!r:.60} is not in the text")
    engine = Compressor(parts.scorer(compressor), parts.counter(tokenizer))
    with progress_bar("compressing", len(text)) as progress:
        (result,) = engine.compress(
            [text],
            budget,
            question=question,
            keep=keep or (),
            formats=[Path(file).suffix or None],
            force_keep=force_keep or (),
            force_drop=force_drop or (),
            drop_consecutive=drop_consecutive,
            keep_digits=keep_digits,
            segments=segments,
            json=rules,
            fold=fold,
            progress=progress,
        )
    for path in rules.unused if rules else ():
        say(f"note: --rule {path!r:.60} fits no value of JSON in the text")
    if result.reason:
        say(f"note: {result.reason}")
    if html is not None:
        write_text(html, to_html([result], title=Path(file).name if file != "-" else "stdin"))
    if as_json:
        print_json(
            {
                "text": result.text,
                "tokens_in": result.tokens_in,
                "tokens_out": result.tokens_out,
                "rate": result.rate,
                "spans": [list(span) for span in result.spans],
                "scores": [list(score) for score in result.scores],
                "notes": [[note.at, note.text] for note in result.notes],
                "seconds": result.seconds,
                "compressor": result.compressor,
                "because": result.because,
                "reason": result.reason,
            }
        )
    else:
        print_text(result.text)
        because = f" ({result.because})" if result.because else ""
        if sys.stdout.isatty() and not result.text.endswith("\n"):
            print_text("\n")
        say(
            f"{result.tokens_in} -> {result.tokens_out} tokens ({result.rate:.0%}) "
            f"by {result.compressor} in {result.seconds:.2f} s{because}"
        )


def recover(
    original: Annotated[str, typer.Option(help="The text before compression.")],
    compressed: Annotated[
        str, typer.Option(help="What became of it: text, or the output of compress --json.")
    ],
    answer: Annotated[str, typer.Argument(metavar="[ANSWER|-]", help="- is stdin.")] = "-",
    max_gap: Annotated[int, typer.Option(help="Most words put back in one place.")] = 10,
) -> None:
    """Print an answer with the words that compression dropped inside the phrases it repeats."""
    from ..compressors import recovered
    from .files import read_text

    if answer == "-":
        answer = read_text("-")
    source, short = read_text(original), read_text(compressed)
    text, spans = _result(compressed, short)
    print_text(recovered(source, text, answer, spans=spans, max_gap=max_gap))


def _result(name: str, text: str) -> tuple[str, list[tuple[int, int]] | None]:
    """Return the text and the spans of a file that compress wrote, None without spans."""
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return text, None
    if not isinstance(value, dict) or "spans" not in value:
        return text, None
    fields = cast("dict[str, Any]", value)
    try:
        return str(fields["text"]), [(int(start), int(end)) for start, end in fields["spans"]]
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidRequest(
            f"{name} looks like the output of compress --json, but its spans are no pairs of"
            " offsets; write it again"
        ) from error
