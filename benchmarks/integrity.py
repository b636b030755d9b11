"""Is what compression promises true of these texts? Exit code 1 if anything is not.

    python benchmarks/integrity.py FOLDER... [--tokenizer NAME] [--compressor NAME] [--most N]

Compresses every text file of the folders, and every text of 40 words or more in their .jsonl.gz
files (chats, tool results, contexts; at most N a file), at rates 1, 0.9, 0.5, 0.2 and 0, and
checks: no exception; the output is made of the reported spans and notes; never more tokens than
asked for, or a reason; rate 1 is the same text; numbers, identifiers and URLs are whole or absent
(found here by patterns of this file's own, by their place); no word that is not in the input; JSON
and JSON Lines have the same keys, records and numbers, each string a part of its own; code in
fences is byte-equal or absent; files of code, CSV, XML, YAML and TOML are whole, with a reason.
Prints a row a folder and rate, and what is broken.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from headrace.compressors import Budget, Compressed, Compressor, make_counter, make_scorer
from headrace.compressors.notes import woven
from headrace.middleware.files import FileError, read_text

RATES = (1.0, 0.9, 0.5, 0.2, 0.0)
WHOLE = {".csv", ".xml", ".yaml", ".yml", ".toml", ".c", ".go", ".java", ".py", ".js", ".ts"}
UNITS = {
    "urls": re.compile(r"https?://[^\s<>\"'`)\]}，。、）]*[\w/]"),
    "identifiers": re.compile(
        r"(?<![\w@./\\-])(?=[\w-]*\d)(?=[\w-]*[A-Za-z])[A-Za-z0-9]+(?:[-_][A-Za-z0-9]+)*(?![\w@/\\-])"
    ),
    "numbers": re.compile(r"(?<![\w.,:/-])\d+(?:[.,:/-]\d+)*(?![\w])"),
}
WORD = re.compile(r"[^\W_]+")
WIDE = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uac00-\ud7af\uff00-\uffef]"
)
FENCE = re.compile(r"^(`{3,})[^`\n]*\n.*?^\1[ \t]*$", re.MULTILINE | re.DOTALL)


def values(text: str) -> Any:
    """Return what a JSON or JSON Lines text says, its numerals as they are written."""
    exact: Any = {"parse_int": str, "parse_float": str, "object_pairs_hook": tuple}
    try:
        return json.loads(text, **exact)
    except ValueError:
        return [json.loads(line, **exact) for line in text.split("\n") if line.strip()]


def is_part(new: Any, old: Any) -> bool:
    """Whether a JSON value is another one with parts of its strings left out."""
    if isinstance(new, str) and isinstance(old, str):
        rest = iter(old)
        return bool(new.strip()) == bool(old.strip()) and all(char in rest for char in new)
    if isinstance(new, (list, tuple)) and isinstance(old, (list, tuple)):
        return len(new) == len(old) and all(map(is_part, new, old))
    return bool(new == old)


def strings(value: Any) -> str:
    """Return all the strings of a JSON value, a line each."""
    if isinstance(value, (list, tuple)):
        return "\n".join(map(strings, value))
    return value if isinstance(value, str) else ""


def faults(suffix: str, text: str, rate: float, result: Compressed) -> Iterator[str]:
    """Yield every promise that this result breaks."""
    if result.text != woven(text, result.spans, result.notes):
        yield "not made of its spans"
    if result.reason is None and result.tokens_out > rate * result.tokens_in:
        yield f"{result.tokens_out} of {result.tokens_in} tokens without a reason"
    if rate == 1 and result.text != text:
        yield "changed at rate 1"
    if rate < 1 and suffix in WHOLE and (result.text != text or not result.reason):
        yield "not whole with a reason"
    spans: Sequence[tuple[int, int]] | None = result.spans
    old, new = text, "".join(text[a:b] for a, b in result.spans)
    if is_json(suffix, text):
        old, new, spans = strings(values(text)), strings(values(result.text)), None
        if not is_part(values(result.text), values(text)):
            yield "other JSON"
    known = set(WORD.findall(WIDE.sub(" ", old)))
    for word in WORD.findall(WIDE.sub(" ", new)):
        if word not in known:
            yield f"new word {word!r}"
    for kind, pattern in UNITS.items():
        if spans is None:
            have = Counter(match[0] for match in pattern.finditer(old))
            lost = Counter(match[0] for match in pattern.finditer(new)) - have
            yield from (f"{kind}: new {one!r}" for one in lost)
            continue
        kept = bytearray(len(text))
        for start, end in spans:
            kept[start:end] = b"\1" * (end - start)
        for match in pattern.finditer(text):
            if 0 < sum(kept[slice(*match.span())]) < len(match[0]):
                yield f"{kind}: cut {match[0]!r}"
    blocks = {match[0] for match in FENCE.finditer(text)}
    if spans is not None and result.text.count("```") % 2 == text.count("```") % 2:
        for match in FENCE.finditer(new):
            if match[0] not in blocks:
                yield f"code: cut {match[0][:40]!r}"


def is_json(suffix: str, text: str) -> bool:
    """Whether a text is JSON by its file's name or, of a chat, by itself."""
    if suffix in (".json", ".jsonl"):
        return True
    try:
        return not suffix and text.lstrip()[:1] in ("{", "[") and bool(json.loads(text))
    except ValueError:
        return False


def texts(folder: Path, most: int) -> Iterator[tuple[str, str, str]]:
    """Yield (name, suffix, text) of everything to compress."""
    for path in sorted(p for p in folder.iterdir() if p.is_file()):
        if path.name.endswith(".jsonl.gz"):
            with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
                found = dict.fromkeys(long_strings([json.loads(line) for line in file]))
            step = max(len(found) // most, 1)
            for number, text in enumerate(list(found)[::step][:most]):
                yield f"{path.name}:{number}", "", text
            continue
        try:
            yield path.name, path.suffix, read_text(str(path))
        except FileError as error:
            print(f"{path.name}: {error}")


def long_strings(value: Any) -> Iterator[str]:
    """Yield the texts of 40 words (or 120 wide characters) and more."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from long_strings(one)
    elif isinstance(value, str) and (len(value.split()) > 40 or len(WIDE.findall(value)) > 120):
        yield value


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--tokenizer")
    parser.add_argument("--compressor", default="auto")
    parser.add_argument("--most", type=int, default=200)
    options = parser.parse_args()
    compressor = Compressor(make_scorer(options.compressor), make_counter(options.tokenizer))
    broken: list[str] = []
    kinds = ", ".join(UNITS)
    print(f"| folder | rate | texts | kept | returned whole | {kinds} | broken promises |")
    print("|---|---|---|---|---|---|---|")
    for folder in options.folders:
        given = list(texts(folder, options.most))
        units = [sum(len(p.findall(text)) for _, _, text in given) for p in UNITS.values()]
        for rate in RATES:
            before = after = whole = 0
            start = len(broken)
            for name, suffix, text in given:
                (result,) = compressor.compress([text], Budget(rate=rate), formats=[suffix or None])
                found = list(faults(suffix, text, rate, result))
                broken += [f"{folder.name}/{name} at {rate:g}: {fault}" for fault in found]
                before += result.tokens_in
                after += result.tokens_out
                whole += result.text == text
            cells = (
                folder.name,
                f"{rate:g}",
                len(given),
                f"{after / max(before, 1):.3f}",
                whole,
                ", ".join(f"{number:,}" for number in units),
                len(broken) - start,
            )
            print("| " + " | ".join(map(str, cells)) + " |", flush=True)
    print(f"\n{len(broken)} broken promises", *broken[:40], sep="\n")
    raise SystemExit(bool(broken))


if __name__ == "__main__":
    main()
