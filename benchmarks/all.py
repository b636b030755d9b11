"""All benchmarks that take minutes, each into a file of build/bench; a page of what was measured.

    python benchmarks/all.py [--data DATA] [--only NAME ...]

Without ``--data``, those that need texts of others are left out. Those beside a peer or a server
(``--peer``, ``--url``) are run by hand, as docs/measured.md says.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ALONE: dict[str, list[str]] = {
    "plan_schedules": ["--graphs", "100"],
    "dispatch": ["--runs", "3"],
    "batching": ["--runs", "1", "--tokens", "32"],
    "scorer_batching": ["--runs", "1"],
    "fast_forward": ["--prompts", "2", "--tokens", "80"],
    "closing": ["--limits", "40"],
    "constraint_speed": [],
    "constrained_batch": ["--tokens", "32", "--runs", "1"],
}
WITH_DATA: dict[str, list[str]] = {
    "prefix_cache": ["--chats", "4"],
    "agent_traces": ["--chats", "2"],
    "plan_router": [],
    "quality": ["--sets", "squad", "--questions", "10", "--methods", "lexical", "mini"],
}


def main() -> None:
    """Run them one after the other and write build/bench/README.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", nargs="+", choices=[*ALONE, *WITH_DATA])
    options = parser.parse_args()
    out = HERE.parent / "build" / "bench"
    out.mkdir(parents=True, exist_ok=True)
    chosen = ALONE | (WITH_DATA if options.data else {})
    failed: list[str] = []
    pages: list[str] = ["# Measured\n"]
    for name, arguments in chosen.items():
        if options.only and name not in options.only:
            continue
        line = [sys.executable, str(HERE / f"{name}.py"), *arguments]
        if name in WITH_DATA:
            line += ["--data", str(options.data)]
        started = time.monotonic()
        done = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=False)
        (out / f"{name}.md").write_text(done.stdout, encoding="utf-8")
        said = "done" if done.returncode == 0 else f"FAILED with status {done.returncode}"
        sys.stderr.write(f"{name}: {said} in {time.monotonic() - started:.0f} s\n")
        if done.returncode:
            failed.append(name)
        command = " ".join(["python", f"benchmarks/{name}.py", *arguments])
        pages.append(f"## {name}\n\n`{command}`\n\n{done.stdout}")
    (out / "README.md").write_text("\n".join(pages), encoding="utf-8")
    sys.stderr.write(f"see {out / 'README.md'}\n")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
