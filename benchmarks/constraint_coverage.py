"""How much of JSON Schema is enforced, and whether what is called enforced is.

    python benchmarks/constraint_coverage.py --data DIR

DIR holds ``jsonschemabench/schemas.jsonl.gz`` (schemas from the field with valid and invalid
instances, guidance-ai/jsonschemabench) and ``json_schema_test_suite.tar.gz`` (the JSON Schema Test
Suite, draft 2020-12; ``format.json`` is left out, which says that formats are not checked). Each
schema is compiled in a forked child with a limit on its CPU time. An instance counts as accepted
when the automaton can write its value, in whatever order of keys and with 1 for 1.0: JSON Schema
knows no difference, automata fix both. ``--walks`` lets the automaton write at random where it
claims to enforce everything, and validates what came out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import resource
import select
import signal
import sys
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

CPU_SECONDS = 20
ENGINES = ("headrace", "llguidance", "llguidance lenient", "xgrammar", "outlines_core")
OURS = ("headrace", "headrace by xgrammar")
Feed = Callable[[Any, bytes], Any]  # an automaton that has taken the bytes, None if it cannot


@dataclass
class Case:
    """A schema and its instances."""

    source: str
    name: str
    schema: Any
    tests: list[tuple[Any, bool]]


@dataclass
class Verdict:
    """What one engine made of one case."""

    status: str = "ok"  # or: refused, empty (no value fits, it says), timeout, died
    level: str = "full"
    reason: str = ""
    wrong_accepts: list[str] = field(default_factory=list)
    wrong_rejects: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)  # by automaton and validator together
    walks: int = 0
    wrong_walks: list[str] = field(default_factory=list)
    seconds: float = 0.0


def cases(data: Path) -> Iterator[Case]:
    """Read both collections."""
    with gzip.open(data / "jsonschemabench" / "schemas.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in file.read().split("\n"):
            if line:
                row = json.loads(line)
                tests = [(test["data"], test["valid"]) for test in row["tests"]]
                yield Case("JSONSchemaBench", row["id"], row["schema"], tests)
    with tarfile.open(data / "json_schema_test_suite.tar.gz") as archive:
        for member in archive.getmembers():
            path = member.name.partition("draft2020-12/")[2]
            if "/tests/" not in member.name or not path.endswith(".json") or path == "format.json":
                continue
            opened = archive.extractfile(member)
            assert opened is not None
            for at, group in enumerate(json.load(opened)):
                tests = [(test["data"], test["valid"]) for test in group["tests"]]
                yield Case("Test Suite", f"{path}:{at}", group["schema"], tests)


# ---- the engines: (constraint compiled once) -> (start, feed, is_complete, level) ----


class Engines:
    """Every library over one tokenizer, loaded before the children are forked."""

    def __init__(self, names: Sequence[str]) -> None:
        import transformers

        import headrace.middleware.validate
        from headrace.backends.decoding.compiler import Compiler
        from headrace.middleware.models import resolve

        assert headrace.middleware.validate  # loaded before the first child
        folder = resolve("smollm2", kind="decoder")
        tokenizer: Any = cast("Any", transformers).AutoTokenizer.from_pretrained(folder)
        self.compiler = Compiler(tokenizer, len(tokenizer), [tokenizer.eos_token_id])
        self.eos = tokenizer.eos_token_id
        vocabulary = self.compiler._vocabulary
        self.ll = vocabulary.ll
        if "xgrammar" in names or "headrace" in names:
            import xgrammar as xgr

            info = xgr.TokenizerInfo.from_huggingface(tokenizer, vocab_size=len(tokenizer))
            self.xgrammar = xgr.GrammarCompiler(
                info, max_threads=1, enable_dynamic_compilation=True
            )
        if "outlines_core" in names:
            from headrace.backends.decoding.engines.outlines_core import pieces

            self.pieces = {bytes.fromhex(k): v for k, v in pieces(vocabulary).items()}

    def open(self, name: str, schema: Any) -> tuple[Any, Feed, Callable[[Any], bool], str]:
        """Compile a schema; returns the start, how to go on, what is complete, and the claim."""
        if name in OURS:
            return self._headrace(schema, "auto" if name == "headrace" else "xgrammar")
        if name == "xgrammar":
            return self._xgrammar(schema)
        if name == "outlines_core":
            return self._outlines(schema)
        return self._llguidance(schema, lenient="lenient" in name)

    def _headrace(self, schema: Any, engine: Any) -> tuple[Any, Feed, Callable[[Any], bool], str]:
        from headrace.middleware.errors import UnsupportedConstraint
        from headrace.middleware.types import Constraint

        compiler = self.compiler.with_engine(engine)
        matcher = compiler.matcher(Constraint("json_schema", json.dumps(schema)))

        def feed(at: Any, text: bytes) -> Any:
            at = at.copy()
            try:
                for token in self.ll.tokenize_bytes(text):
                    at.advance(token)
            except UnsupportedConstraint:
                return None
            return at

        return matcher, feed, lambda at: at.is_complete, matcher.enforcement.level

    def _llguidance(
        self, schema: Any, *, lenient: bool
    ) -> tuple[Any, Feed, Callable[[Any], bool], str]:
        from llguidance import LLMatcher

        given: Any = {} if schema is True else {"not": {}} if schema is False else schema
        options: Any = {"lenient": lenient}
        matcher = LLMatcher(
            self.ll, LLMatcher.grammar_from_json_schema(given, overrides=options), log_level=0
        )
        if not matcher.is_error():
            matcher.compute_bitmask()
        if matcher.is_error():
            raise ValueError(matcher.get_error()[:200])

        def feed(at: Any, text: bytes) -> Any:
            at = at.deep_copy()
            tokens = self.ll.tokenize_bytes(text)
            return at if at.try_consume_tokens(tokens) == len(tokens) else None

        return matcher, feed, lambda at: at.is_accepting(), "full"

    def _xgrammar(self, schema: Any) -> tuple[Any, Feed, Callable[[Any], bool], str]:
        import xgrammar as xgr

        compiled = self.xgrammar.compile_json_schema(json.dumps(schema), strict_mode=False)

        def feed(at: Any, text: bytes) -> Any:
            at = at.fork()
            return at if at.accept_string(text) else None

        return xgr.GrammarMatcher(compiled), feed, lambda at: at.is_completed(), "full"

    def _outlines(self, schema: Any) -> tuple[Any, Feed, Callable[[Any], bool], str]:
        import outlines_core
        from outlines_core.json_schema import build_regex_from_schema

        pattern = build_regex_from_schema(json.dumps(schema))
        library = cast("Any", outlines_core)
        index = library.Index(pattern, library.Vocabulary(1 << 20, self.pieces))

        def feed(at: int, text: bytes) -> int | None:
            state: int | None = at
            for token in self.ll.tokenize_bytes(text):
                state = None if state is None else index.get_next_state(state, token)
            return state

        return index.get_initial_state(), feed, index.is_final_state, "full"


# ---- one case ----


def judge(engines: Engines, name: str, case: Case, walks: int) -> Verdict:
    """Compile a case and hold its instances against the automaton."""
    from headrace.middleware.errors import HeadraceError

    verdict = Verdict()
    started = time.process_time()
    try:
        start, feed, is_complete, verdict.level = engines.open(name, case.schema)
    except (HeadraceError, ValueError, RuntimeError, TypeError, AttributeError) as error:
        is_empty = "no finite value" in str(error) or "nsatisfiable" in str(error)
        wrong = [json.dumps(value)[:120] for value, is_valid in case.tests if is_valid]
        return Verdict(
            "empty" if is_empty else "refused",
            reason=f"{type(error).__name__}: {error!s:.120}",
            wrong_rejects=wrong if is_empty else [],
        )
    verdict.seconds = time.process_time() - started
    orders = list(_orders(case.schema))
    for value, is_valid in case.tests:
        text = json.dumps(value, ensure_ascii=False)
        try:
            is_accepted = can_write(
                start, feed, is_complete, value, text, orders, 400 if is_valid else 100
            )
        except UnicodeEncodeError:
            continue  # half a surrogate pair is no text
        if is_accepted and not is_valid:
            verdict.wrong_accepts.append(text[:120])
        if is_valid and not is_accepted:
            verdict.wrong_rejects.append(text[:120])
        if name in OURS and (is_accepted and valid(value, case.schema)) != is_valid:
            verdict.missed.append(text[:120])
    if name in OURS and verdict.level == "full":
        for seed in range(walks):
            written = walk(start, engines, random.Random(f"{case.name}{seed}"))
            if written is not None:
                verdict.walks += 1
                if not valid(json.loads(written), case.schema):
                    verdict.wrong_walks.append(written[:160])
    return verdict


def can_write(
    start: Any,
    feed: Feed,
    is_complete: Callable[[Any], bool],
    value: Any,
    text: str,
    orders: Sequence[Sequence[str]] = (),
    tries: int = 400,
) -> bool:
    """Whether the automaton accepts the value, written in some order of its keys."""
    end = feed(start, text.encode())
    if end is not None and is_complete(end):
        return True
    left = tries

    def limited(at: Any, text: bytes) -> Any:
        nonlocal left
        left -= 1
        return feed(at, text) if left > 0 else None

    value = _ordered(value, orders)
    return any(is_complete(end) for end in _written(start, limited, value))


def _orders(schema: Any) -> Iterator[list[str]]:
    """Yield the names of each object in the schema's order."""
    if isinstance(schema, list):
        for one in cast("Sequence[Any]", schema):
            yield from _orders(one)
    elif isinstance(schema, dict):
        given = cast("dict[str, Any]", schema)
        if isinstance(given.get("properties"), dict):
            yield list(given["properties"])
        for one in given.values():
            yield from _orders(one)


def _ordered(value: Any, orders: Sequence[Sequence[str]]) -> Any:
    """Put the keys of each object into the order of the properties that it seems to have."""
    if isinstance(value, list):
        return [_ordered(one, orders) for one in cast("Sequence[Any]", value)]
    if not isinstance(value, dict):
        return value
    given = cast("dict[str, Any]", value)
    best: Sequence[str] = max(orders, key=lambda names: len(given.keys() & set(names)), default=())
    names = [name for name in best if name in given]
    names += [name for name in given if name not in best]
    return {name: _ordered(given[name], orders) for name in names}


def _written(at: Any, feed: Feed, value: Any) -> Iterator[Any]:
    """Yield the automaton behind each way to write a value."""
    if at is None:
        return
    if isinstance(value, dict):
        opened = feed(at, b"{")
        yield from _members(opened, feed, dict(cast("dict[str, Any]", value)), True)
    elif isinstance(value, list):
        yield from _items(feed(at, b"["), feed, cast("Sequence[Any]", value), True)
    else:
        texts = [json.dumps(value, ensure_ascii=False)]
        if isinstance(value, float) and value.is_integer():
            texts.append(str(int(value)))
        for text in texts:
            if (end := feed(at, text.encode())) is not None:
                yield end


def _members(at: Any, feed: Feed, rest: dict[str, Any], is_first: bool) -> Iterator[Any]:
    if at is None:
        return
    if not rest:
        if (end := feed(at, b"}")) is not None:
            yield end
        return
    for name in rest:
        key = ("" if is_first else ", ") + json.dumps(name, ensure_ascii=False) + ": "
        others = {key: one for key, one in rest.items() if key != name}
        for after in _written(feed(at, key.encode()), feed, rest[name]):
            yield from _members(after, feed, others, False)


def _items(at: Any, feed: Feed, rest: Sequence[Any], is_first: bool) -> Iterator[Any]:
    if at is None:
        return
    if not rest:
        if (end := feed(at, b"]")) is not None:
            yield end
        return
    for after in _written(at if is_first else feed(at, b", "), feed, rest[0]):
        yield from _items(after, feed, rest[1:], False)


def valid(value: Any, schema: Any) -> bool:
    """Whether the validator accepts a value."""
    from headrace.middleware.validate import problem

    try:
        return problem(value, schema, seconds=10, pattern_seconds=2) is None
    except (RecursionError, TimeoutError):
        return False


def walk(start: Any, engines: Engines, chance: random.Random) -> str | None:
    """Let the automaton write at random, short pieces first; None when it comes to no end."""
    import numpy as np

    at, tokens = start.copy(), list[int]()
    for _ in range(120):
        if at.is_complete and (at.is_finished or chance.random() < 0.5):
            return engines.ll.decode_bytes(tokens).decode("utf-8", "replace")
        bits = np.unpackbits(np.frombuffer(at.mask(), np.uint8), bitorder="little")
        bits[engines.eos] = 0
        allowed = np.flatnonzero(bits)
        if allowed.size == 0:
            return None
        picks = [int(allowed[chance.randrange(allowed.size)]) for _ in range(4)]
        # Mostly what closes or is short; a quote, a bracket or a brace if there is one.
        closing = [int(t) for t in allowed[:400] if engines.ll.decode_bytes([int(t)]) in _CLOSING]
        if closing and chance.random() < 0.45:
            picks = closing
        token = min(picks, key=lambda t: (len(engines.ll.decode_bytes([t])), chance.random()))
        at.advance(token)
        tokens.append(token)
    return None


_CLOSING = {b'"', b"}", b"]", b":", b",", b"1", b"0", b'",', b'"}', b'":'}


def forked(work: Callable[[], Verdict]) -> Verdict:
    """Run in a child with a limit on its CPU time and memory."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        try:
            answer = json.dumps(work().__dict__)
        except BaseException as error:
            answer = json.dumps({"status": "died", "reason": repr(error)[:200]})
        os.write(writer, answer.encode()[:65000])
        os._exit(0)
    os.close(writer)
    data = b""
    limit = time.monotonic() + 6 * CPU_SECONDS
    while time.monotonic() < limit:
        if not select.select([reader], [], [], 1)[0]:
            continue
        piece = os.read(reader, 65536)
        if not piece:
            break
        data += piece
    os.close(reader)
    if not data:
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    if not data:
        is_time = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        return Verdict("timeout" if is_time else "died", reason=f"status {status}")
    return Verdict(**json.loads(data))


def table(source: str, verdicts: dict[str, list[Verdict]]) -> list[str]:
    """One row an engine."""
    total = max(len(found) for found in verdicts.values())
    lines = [
        f"\n## {source}: {total} schemas\n",
        "| engine | schemas | claims to enforce all | of these: accept an invalid instance"
        " | refuse a valid one | handled | refused | timeout or crash |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, found in verdicts.items():
        full = [one for one in found if one.status == "ok" and one.level == "full"]
        accepts = sum(bool(one.wrong_accepts or one.wrong_walks) for one in full)
        rejects = sum(bool(one.wrong_rejects) for one in full)
        right = sum(not (one.wrong_accepts or one.wrong_rejects or one.wrong_walks) for one in full)
        partial = [one for one in found if one.status == "ok" and one.level == "partial"]
        handled = right + sum(not one.missed for one in partial)
        handled += sum(one.status == "empty" and not one.wrong_rejects for one in found)
        refused = sum(one.status == "refused" for one in found)
        lost = sum(one.status in ("timeout", "died") for one in found)
        lines.append(
            f"| {name} | {len(found)} | {len(full)} | {accepts} | {rejects} | {handled}"
            f" ({handled / len(found):.1%}) | {refused} | {lost} |"
        )
    ours = [one for name in OURS for one in verdicts.get(name, [])]
    walks = sum(one.walks for one in ours)
    wrong = sum(len(one.wrong_walks) for one in ours)
    if walks:
        lines.append(f"\nWritten at random by headrace's automata: {walks}, invalid: {wrong}")
    return lines


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sample", type=int, default=0, help="cases of each source; 0 is all")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--walks", type=int, default=3)
    parser.add_argument("--engines", nargs="*", default=ENGINES[:4], choices=(*ENGINES, *OURS[1:]))
    parser.add_argument("--only", help="cases whose name contains this")
    parser.add_argument("--show", action="store_true", help="every wrong case, one a line")
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # a forked child has none of its threads
    engines = Engines(options.engines)
    sources: dict[str, list[Case]] = {}
    for case in cases(options.data):
        if not options.only or options.only in case.name:
            sources.setdefault(case.source, []).append(case)
    for source, found in sources.items():
        if options.sample and options.sample < len(found):
            found = random.Random(options.seed).sample(found, options.sample)
        verdicts: dict[str, list[Verdict]] = {name: [] for name in options.engines}
        for case in found:
            for name in options.engines:
                verdict = forked(partial(judge, engines, name, case, options.walks))
                verdicts[name].append(verdict)
                if options.show and name in OURS:
                    _show(case, verdict)
            if sys.stderr.isatty() or options.show:
                print(f"{len(verdicts[name])}/{len(found)}", file=sys.stderr, end="\r")
        print("\n".join(table(source, verdicts)), flush=True)


def _show(case: Case, verdict: Verdict) -> None:
    if verdict.status not in ("ok", "empty"):
        print(f"{verdict.status}: {case.name}: {verdict.reason}")
    is_full = verdict.level == "full"
    if verdict.status == "empty" and verdict.wrong_rejects:
        print(f"not empty: {case.name}: {verdict.wrong_rejects[0]}")
        return
    for what in ("wrong_accepts", "wrong_rejects", "wrong_walks", "missed"):
        for text in getattr(verdict, what) if is_full or what == "missed" else ():
            print(f"{what} ({verdict.level}): {case.name}: {text}")


if __name__ == "__main__":
    main()
