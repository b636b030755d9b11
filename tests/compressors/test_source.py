"""Source code without a file name is whole, with a reason; prose about code is shortened."""

from __future__ import annotations

import ast
import sysconfig
from pathlib import Path

import pytest

from headrace.compressors import Budget, Compressor, make_counter, make_scorer
from headrace.compressors.detection import detect
from headrace.compressors.listings import unlisted

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
LIBRARY = Path(sysconfig.get_paths()["stdlib"])
LOOSE = ("prose", "log", "records")
RATES = (0.3, 0.5, 0.7)


def modules() -> list[tuple[str, str]]:
    """Name and text of the standard library's modules that hold more than a docstring."""
    found: list[tuple[str, str]] = []
    for path in sorted(LIBRARY.rglob("*.py")):
        name = path.relative_to(LIBRARY).as_posix()
        if name.startswith(("site-packages", "test/", "lib2to3/tests", "idlelib/idle_test")):
            continue
        try:
            text = path.read_text(encoding="utf-8")
            body = ast.parse(text).body
        except (UnicodeDecodeError, SyntaxError):
            continue
        if len(body) > 1:
            found.append((name, text))
    return found


MODULES = modules()


def test_every_module_of_the_standard_library_is_code() -> None:
    assert len(MODULES) > 300
    assert [name for name, text in MODULES if detect(text) in LOOSE] == []


@pytest.mark.parametrize("rate", RATES)
def test_a_module_comes_back_byte_by_byte_and_it_is_said_why(rate: float) -> None:
    texts = [text for _, text in MODULES[::15]]
    for result in COMPRESSOR.compress(texts, Budget(rate=rate)):
        assert result.text == result.original
        assert "source code is kept whole" in (result.reason or "")


def test_the_listing_of_a_module_is_code_too() -> None:
    texts = [text.splitlines()[:150] for _, text in MODULES[::7] if text.count("\n") > 150]
    listings = ["".join(f"{i:6d}\t{line}\n" for i, line in enumerate(text, 1)) for text in texts]
    missed = [listing for listing in listings if detect(listing) in LOOSE]
    assert len(missed) <= 0.05 * len(listings)  # pages that are all docstring


SOURCES = {
    "module with a long docstring": (
        '"""Words of a language that nobody may use as a name.\n\nThis file is written by a'
        " tool, so"
        " please do not edit it by hand, but run the tool\nagain when the grammar of the language "
        'has changed.\n"""\n\n__all__ = ["words"]\n\nwords = [\n    "and",\n    "or",\n]\n'
    ),
    "cut off in a function": (
        "import os\n\n# Where all of the things are that we look for, in the order of the search\n"
        'PATHS = ["/usr", "/opt"]\n\n\ndef find(name, paths=PATHS):\n    """Return the first path '
        'that holds the name, or none when no path does.\n\n    It never raises."""\n'
        "    for path in paths:\n        if os.path.exists(os.path.join(path, name)):\n      "
        "      re"
    ),
    "begins in a docstring": (
        "    and the rest of what is said about the class, which is long and of many words.\n"
        '    """\n\n    def __init__(self, name):\n        self.name = name\n       '
        " self.seen = set()\n"
        "\n    def add(self, item):\n        self.seen.add(item)\n"
    ),
    "sql": (
        "-- The users of the shop, with the day on which they came to us\nCREATE TABLE users (\n"
        "  id bigint PRIMARY KEY,\n  name text NOT NULL,\n  since date\n);\n\n"
        "CREATE INDEX users_name ON users (name);\nINSERT INTO users (id, name) VALUES (1,"
        " 'Ann');\n"
    ),
    "dockerfile": (
        "# The image that all of our workers run in, day and night\nFROM python:3.12-slim\n"
        "WORKDIR /app\nCOPY requirements.txt .\nRUN pip install --no-cache-dir -r"
        " requirements.txt\n"
        'COPY . .\nEXPOSE 8080\nCMD ["python", "-m", "app"]\n'
    ),
    "ini": (
        "; who may write to the disk, and where to\n[server]\nhost = 0.0.0.0\nport = 8080\n\n"
        "[log]\nlevel = info\nfile = /var/log/app.log\n"
    ),
    ".env": "DATABASE_URL=postgres://app@db:5432/app\nSECRET_KEY=abc def\nDEBUG=false\n",
    "unit of systemd": (
        "[Unit]\nDescription=The worker that sends all of the letters\nAfter=network.target\n\n"
        "[Service]\nExecStart=/usr/bin/worker --all\nRestart=always\n"
    ),
    "cmake": (
        "# Find the library and all that it needs to be built with\n"
        "cmake_minimum_required(VERSION 3.20)\nproject(mill C)\nadd_library(mill src/mill.c)\n"
        "target_link_libraries(mill PUBLIC m)\n"
    ),
    "makefile": (
        "CC = gcc\nFLAGS := -O2 -Wall\n\nall: mill\n\nmill: mill.o wheel.o\n\t$(CC) $(FLAGS)"
        " -o $@ $^\n"
        "\nclean:\n\trm -f *.o mill\n"
    ),
    "shell": (
        "set -eu\n# Go through all of the files that were changed since the last time\n"
        'for f in "$@"; do\n  if [ -f "$f" ]; then\n    cp "$f" "$TARGET/"\n  fi\ndone\n'
    ),
    "rust with an example in its comments": (
        "/// Returns how much of the water's power the wheel can use at this height.\n///\n"
        "/// ```\n/// assert_eq!(mill::share(2.0), 0.6);\n/// ```\npub fn share(height: f64)"
        " -> f64 {\n"
        "    if height > 3.0 {\n        0.85\n    } else {\n        0.6\n    }\n}\n"
    ),
    "javascript with comments": (
        "/**\n * Adds the two numbers that it is given, and gives back what they come to.\n"
        " * Nobody should call it with anything that is not a number.\n */\n"
        "export function add(a, b) {\n  return a + b;\n}\n\nexport default add;\n"
    ),
    "grep -n": (
        "src/app.py:12:def main(path):\nsrc/app.py:40:    return load(path)\n"
        "src/load.py:7:def load(path):\nsrc/load.py:9:    with open(path) as file:\n"
    ),
    "rg in one file": "12:def main(path):\n40:    return load(path)\n41:\n52:main(sys.argv[1])\n",
    "cat -n": (
        "     1\timport os\n     2\t\n     3\tdef main(path):\n     4\t    # the path as it"
        " was given "
        "to us by the one who asked\n     5\t    return os.listdir(path)\n"
    ),
}


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("text", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_code_of_many_kinds_is_whole_with_a_reason(text: str, ends: str, rate: float) -> None:
    text = text.replace("\n", ends)
    [result] = COMPRESSOR.compress([text], Budget(rate=rate))
    assert result.text == text
    assert "kept whole" in (result.reason or "")


PROSE = {
    "prompt in quotes": (
        '"""\nSummarise the letter below in two sentences, and name the one who wrote it.\n'
        'Do not say what you think of it.\n"""\n'
    ),
    "readme": (
        "# The mill\n\nThe mill grinds what it is given. Install it as you install all others:\n\n"
        "```console\npip install mill\nexport MILL=/opt/mill\nmill --help\n```\n\n"
        "## How it works\n\nThe water falls on the wheel, and the wheel turns the stone.\n"
    ),
    "manual with examples": (
        "The wheel\n=========\n\nGive the height of the water to the function ``share``::\n\n"
        "    from mill import share\n    share(2.0)\n\nIt returns what part of the power is used. "
        "Nothing else is\nneeded. For heights of more than three metres it is 0.85::\n\n"
        "    share(4.0)\n"
    ),
    "mail": (
        "From: Ann Lee <ann@example.org>\nTo: Bob Ray <bob@example.org>\nSubject: the wheel\n\n"
        "Dear Bob,\nthe wheel stands still (again); could you come and look at it on Monday?\n"
        "> We will come on Monday,\n> or on Tuesday at the latest.\nYours, Ann\n"
    ),
    "memo": (
        "Network Working Group                                          A. Lee\n"
        "Request for Comments: 9999                              December 2026\n\n"
        "1.  Introduction\n\n   This memo says how mills talk to one another.  The key words"
        " MUST and\n"
        "   SHOULD are to be read as in BCP 14.  A mill MUST NOT send more than\n   one message a "
        "second; it SHOULD wait.\n"
    ),
    "numbered points": (
        "1: The wheel turns when the water falls on it.\n2: The stone turns with the wheel.\n"
        "3: The grain falls between the stones and becomes flour.\n4: The miller sells it.\n"
    ),
    "terms": (
        "The tenant pays the rent on the first day of the month;\nthe landlord keeps the roof"
        " dry;\n"
        "the garden is for both of them;\nand neither may keep more than two dogs.\n"
    ),
    "headings": (
        "# What we did\n\n# What we learned\n\nWe learned that the wheel must be oiled.\n\n"
        "# What is next\n\nWe will oil it (twice).\n"
    ),
}


@pytest.mark.parametrize("text", PROSE.values(), ids=PROSE)
def test_prose_that_tells_of_code_or_looks_like_it_is_shortened(text: str) -> None:
    assert detect(text) in LOOSE
    [result] = COMPRESSOR.compress([text * 3], Budget(rate=0.6))
    assert result.tokens_out <= 0.6 * result.tokens_in


def test_lines_without_numbers_before_them_are_no_listing() -> None:
    assert unlisted("one\ntwo\nthree\n") is None
    assert unlisted("3\n1\n2\n") is None


def test_detection_takes_time_in_proportion_to_what_it_reads() -> None:
    """Texts that made expressions go back and forth without end; a hang is the failure."""
    for text in (
        "0" * 3000,
        "a," * 3000,
        "x: " * 2000,
        "<a " * 2000,
        '"' * 3001,
        "(a " * 3000,
        'f("' + 'a\\"' * 9000,
        "f('" + "a\\'" * 9000,
        "f(" * 20_000,
    ):
        assert detect("\n".join([text] * 8)) is not None
