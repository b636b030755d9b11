"""The command ``headrace context``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .terminal import print_json, print_table, print_text, say

if TYPE_CHECKING:
    from ..compressors.context import Order

_ORDERS: dict[str, Order] = {"best": "best first", "ends": "both ends", "original": "original"}


def context(
    files: Annotated[list[str], typer.Argument(help="Files or folders to read.")],
    question: Annotated[str, typer.Option(help="What they should answer.")],
    rate: Annotated[float | None, typer.Option(help="Share of tokens to keep, 0 to 1.")] = None,
    target_tokens: Annotated[int | None, typer.Option(help="Tokens to keep at most.")] = None,
    top_k: Annotated[int | None, typer.Option(help="Passages to keep at most.")] = None,
    method: Annotated[str, typer.Option(help="What ranks the passages.")] = "auto",
    compressor: Annotated[
        str, typer.Option(help="What scores the words; none keeps sentences whole.")
    ] = "auto",
    order: Annotated[str, typer.Option(help="best, ends (the best at both), original.")] = "best",
    tokenizer: Annotated[str | None, typer.Option(help="What counts the tokens.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Print what of many documents answers a question: passages, sentences, words, one budget."""
    from .errors import InvalidRequest
    from .files import read_documents
    from .sdk import compress_documents

    if order not in _ORDERS:
        raise InvalidRequest(f"--order is best, ends or original, got {order!r}")
    found = compress_documents(
        question,
        read_documents(files, on_skip=say),
        rate=rate,
        target_tokens=target_tokens,
        method=method,
        compressor=None if compressor == "none" else compressor,
        top_k=top_k,
        order=_ORDERS[order],
        tokenizer=tokenizer,
    )
    if found.reason:
        say(f"note: {found.reason}")
    if as_json:
        print_json(_fields(found))
        return
    print_text(found.text + "\n" if found.text else "")
    if sys.stderr.isatty():
        rows = [(f"{d.document.score or 0:.3f}", d.original.id or "", d) for d in found.kept]
        print_table(
            ("score", "passage", "tokens"),
            ((score, name, f"{d.tokens_in} -> {d.tokens_out}") for score, name, d in rows),
            to_stderr=True,
        )
    say(
        f"{found.tokens_in} -> {found.tokens_out} tokens ({found.rate:.0%}), {len(found.kept)} of "
        f"{len(found.kept) + len(found.dropped)} passages, by {found.reranker} and "
        f"{found.compressor}"
    )


def _fields(found: Any) -> dict[str, Any]:
    return {
        "text": found.text,
        "kept": [
            {
                "id": one.original.id,
                "title": one.original.title,
                "score": one.document.score,
                "text": one.document.text,
                "spans": [list(span) for span in one.spans],
                "sentences": [asdict(sentence) for sentence in one.sentences],
                "tokens_in": one.tokens_in,
                "tokens_out": one.tokens_out,
                "reason": one.reason,
            }
            for one in found.kept
        ],
        "dropped": [
            {"id": one.original.id, "score": one.score, "reason": one.reason}
            for one in found.dropped
        ],
        "tokens_in": found.tokens_in,
        "tokens_out": found.tokens_out,
        "reranker": found.reranker,
        "compressor": found.compressor,
        "reason": found.reason,
        "seconds": found.seconds,
    }
