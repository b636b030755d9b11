"""Run by ``make wheel-test`` with the Python of an environment that has only the wheel."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.metadata import files
from pathlib import Path

import headrace

TEXT = (
    "The miller ground 14 sacks of rye on Monday, and as it happens it also rained a little. " * 9
)
DOCUMENTS = '{"id": 1, "text": "It rained."}\n{"id": 2, "text": "A stone weighs 1,200 kg."}\n'


def run(*arguments: str, stdin: str) -> str:
    """Run the installed command and return its stdout."""
    return subprocess.run(
        [sys.argv[1], *arguments], input=stdin, capture_output=True, text=True, check=True
    ).stdout


def main() -> None:
    """Check what is installed and that it works with no model at all."""
    assert "site-packages" in (headrace.__file__ or ""), headrace.__file__
    tops = {Path(str(file)).parts[0] for file in files("headrace") or ()}
    tops = {top for top in tops if not top.endswith(".dist-info") and top != ".."}
    assert tops == {"headrace"}, tops
    result = json.loads(run("compress", "--rate", "0.5", "--json", stdin=TEXT))
    assert result["tokens_out"] <= 0.5 * result["tokens_in"], result
    assert result["compressor"] == "mini", result  # its weights came with the wheel
    first = json.loads(
        run("rerank", "--question", "How heavy is a stone?", stdin=DOCUMENTS).splitlines()[0]
    )
    assert first["id"] == 2, first
    sys.stdout.write(f"the wheel of headrace {headrace.__version__} works\n")


if __name__ == "__main__":
    main()
