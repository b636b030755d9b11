"""Is what compression promises true of these files? Exit code 1 if anything is not.

    python benchmarks/integrity.py FOLDER [--tokenizer NAME] [--compressor NAME]

Compresses every text file of a folder at rates 1, 0.9, 0.5, 0.2 and 0 and checks: no exception; the
output is made of the reported spans; never more tokens than asked for, or a reason; rate 1 is the
same text; JSON and JSON Lines hold the same values; CSV, XML, YAML, TOML and code are whole, with
a reason. Prints a row a file: the share of tokens kept at each
rate ("=": returned whole).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from headrace.compressors import Budget, Compressed, Compressor, make_counter, make_scorer
from headrace.middleware.files import FileError, read_text

RATES = (1.0, 0.9, 0.5, 0.2, 0.0)
WHOLE = {".csv", ".xml", ".yaml", ".yml", ".toml", ".c", ".go", ".java", ".py", ".js", ".ts"}


def values(text: str) -> Any:
    """Return what a JSON or JSON Lines text says."""
    try:
        return json.loads(text)
    except ValueError:
        return [json.loads(line) for line in text.split("\n") if line.strip()]


def faults(path: Path, text: str, rate: float, result: Compressed) -> list[str]:
    """Return every promise that this result breaks."""
    found: list[str] = []
    if result.text != "".join(text[start:end] for start, end in result.spans):
        found.append("not made of its spans")
    if result.reason is None and result.tokens_out > rate * result.tokens_in:
        found.append(f"{result.tokens_out} of {result.tokens_in} tokens without a reason")
    if rate == 1 and result.text != text:
        found.append("changed at rate 1")
    if path.suffix in (".json", ".jsonl") and values(result.text) != values(text):
        found.append("other values")
    if rate < 1 and path.suffix in WHOLE and (result.text != text or not result.reason):
        found.append("not whole with a reason")
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokenizer")
    parser.add_argument("--compressor", default="auto")
    options = parser.parse_args()
    compressor = Compressor(make_scorer(options.compressor), make_counter(options.tokenizer))
    num_faults = 0
    print(f"| file | tokens | {' | '.join(f'{rate:g}' for rate in RATES)} |")
    print("|---" * (len(RATES) + 2) + "|")
    for path in sorted(p for p in options.folder.iterdir() if p.is_file()):
        try:
            text = read_text(str(path))
        except FileError as error:
            print(f"| {path.name} | {error} |")
            continue
        cells: list[str] = []
        tokens = 0
        for rate in RATES:
            (result,) = compressor.compress([text], Budget(rate=rate), formats=[path.suffix])
            broken = faults(path, text, rate, result)
            num_faults += len(broken)
            tokens = result.tokens_in
            kept = "=" if result.text == text else f"{result.rate:.3f}"
            cells.append(f"{kept} {'; '.join(broken)}".strip())
        print(f"| {path.name} | {tokens} | {' | '.join(cells)} |")
    print(f"\n{num_faults} broken promises")
    raise SystemExit(bool(num_faults))


if __name__ == "__main__":
    main()
