"""The commands ``headrace constrain ...``."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast, get_args

import typer

from .errors import HeadraceError, InvalidRequest, UnsupportedConstraint
from .terminal import print_json, print_table, print_text
from .types import Constraint, Enforcement

if TYPE_CHECKING:
    from ..backends.decoding.automaton import Compiler

EXIT_FAILURE = 1
_SHOWN = 6  # places of keywords in the table

constrain_app = typer.Typer(
    no_args_is_help=True, help="Look at a constraint: what enforces it, and what that costs."
)


@dataclass(frozen=True)
class Taken:
    """What one engine makes of a schema; ``error`` is why it does not take it."""

    engine: str
    enforcement: Enforcement
    cpu_ms: float
    error: str = ""


@constrain_app.callback()
def _group() -> None:
    """Look at a constraint: what enforces it, and what that costs."""


@constrain_app.command()
def check(
    schema: Annotated[str, typer.Argument(metavar="SCHEMA|-", help="A JSON schema; - is stdin.")],
    instance: Annotated[
        Path | None, typer.Option(help="A JSON file: would it be accepted, and is it valid?")
    ] = None,
    tokenizer: Annotated[
        str, typer.Option(help="Whose tokens: smollm2, a Hugging Face name or a folder.")
    ] = "smollm2",
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Say which engines enforce a JSON schema, at what cost, and what they leave to the check.

    Exit 0 if it can be enforced (and the instance is accepted and valid), 1 if not, 2 if the schema
    is none.
    """
    from ..backends.decoding.automaton import EngineName
    from ..backends.decoding.drafts import draft_of, unknown_keywords
    from ..backends.decoding.schema import load

    spec = _read(schema)
    parsed = load(spec)
    draft = draft_of(parsed)
    silent = [*unknown_keywords(parsed)]
    constraint = Constraint("json_schema", spec)
    compiler = _compiler(tokenizer)
    engines = [_taken(compiler, name, constraint) for name in get_args(EngineName)]
    chosen = engines[0]
    found = None if instance is None else _instance(compiler, constraint, instance, chosen)
    if as_json:
        report: dict[str, Any] = {
            "draft": draft,
            "unknown": silent,
            "engines": [
                {
                    "engine": one.engine,
                    "by": one.enforcement.by,
                    "enforced": one.enforcement.level,
                    "residual": list(one.enforcement.residual),
                    "cpu_ms": round(one.cpu_ms, 2),
                    "error": one.error or None,
                }
                for one in engines
            ],
        }
        if found is not None:
            report["instance"] = found
        print_json(report)
    else:
        _print(engines, found)
        if silent:
            print_text(f"these say nothing in JSON Schema, misspelt? {_places(tuple(silent))}\n")
    is_fine = found is None or (found["accepted"] and found["valid"])
    if chosen.error or not is_fine:
        raise typer.Exit(EXIT_FAILURE)


def _read(source: str) -> str:
    from .files import FileError, read_text

    try:
        return read_text(source).removeprefix("\ufeff")
    except FileError as error:  # 1 is for a schema that cannot be enforced
        raise InvalidRequest(str(error)) from None


def _compiler(name: str) -> Compiler:
    import transformers

    from ..backends.decoding.automaton import Compiler
    from .models import resolve, silent_transformers

    folder = resolve(name, kind="decoder")
    try:
        with silent_transformers():
            tokenizer: Any = cast("Any", transformers).AutoTokenizer.from_pretrained(
                folder, local_files_only=True
            )
    except (OSError, ValueError, KeyError) as error:
        raise InvalidRequest(f"cannot read a tokenizer from {folder}: {error!s:.120}") from error
    return Compiler(tokenizer, len(tokenizer), [tokenizer.eos_token_id])


def _taken(compiler: Compiler, name: Any, constraint: Constraint) -> Taken:
    fresh = compiler.with_engine(name)
    started = time.process_time()
    try:
        warm = compiler.with_engine(name).enforcement(constraint)  # loads the library
        started = time.process_time()
        fresh.matcher(constraint).mask()
    except UnsupportedConstraint as error:
        return Taken(name, Enforcement(), 1000 * (time.process_time() - started), str(error))
    return Taken(name, warm, 1000 * (time.process_time() - started))


def _instance(
    compiler: Compiler, constraint: Constraint, path: Path, chosen: Taken
) -> dict[str, Any]:
    from .check import strict_json, violation

    text = _read(str(path)).strip()
    try:
        usual = json.dumps(strict_json(text), ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"the instance {path} is no JSON: {error}") from None
    try:
        problem = violation(text, constraint)
    except (TimeoutError, RecursionError) as error:
        raise HeadraceError(f"the instance takes too long to check: {error}") from error
    refused: int | None = None
    if not chosen.error and _refused_at(compiler, constraint, usual) is not None:
        refused = _refused_at(compiler, constraint, text)  # else only its whitespace may be unusual
    return {
        "accepted": not chosen.error and refused is None,
        "refused_at": refused,
        "valid": problem is None,
        "problem": problem,
    }


def _refused_at(compiler: Compiler, constraint: Constraint, text: str) -> int | None:
    """Return the character at which the automaton stops, None when it takes the whole text."""
    matcher = compiler.matcher(constraint)
    done = b""
    for token in compiler.tokens_of(text.encode()):
        before = len(done.decode(errors="ignore"))
        done += compiler.bytes_of(token)
        try:
            matcher.advance(token)
        except UnsupportedConstraint:
            return before
    return None if matcher.is_complete else len(text)


def _print(engines: list[Taken], found: dict[str, Any] | None) -> None:
    print_table(
        ("engine", "enforced", "CPU ms", "left to the check of the finished text"),
        (
            (
                one.engine if one.engine == one.enforcement.by else _named(one),
                "no" if one.error else one.enforcement.level,
                f"{one.cpu_ms:.1f}",
                one.error or _places(one.enforcement.residual),
            )
            for one in engines
        ),
    )
    if found is None:
        return
    accepted = "accepted" if found["accepted"] else "refused"
    place = "" if found["refused_at"] is None else f" at character {found['refused_at']}"
    valid = "valid" if found["valid"] else f"invalid: {found['problem']}"
    print_text(f"instance: {accepted} by the automaton{place}, {valid}\n")


def _named(one: Taken) -> str:
    return f"{one.engine} ({one.enforcement.by})" if one.enforcement.by else one.engine


def _places(residual: tuple[str, ...]) -> str:
    more = len(residual) - _SHOWN
    return ", ".join(residual[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
