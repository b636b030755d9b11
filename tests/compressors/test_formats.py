from __future__ import annotations

import csv
import json
import re
import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compressors import Budget, Compressed, Compressor, make_counter, make_scorer
from headrace.compressors.formats import detect

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())

PYTHON = (
    "import os\n\n\ndef main(path: str) -> int:\n    # count\n    return len(os.listdir(path))\n"
)
GO = 'package main\n\nimport "fmt"\n\nfunc main() {\n\tfmt.Println("hi")\n}\n'
C = '#include <stdio.h>\n\nint main(void) {\n    printf("hi\\n");\n    return 0;\n}\n'
JAVA = "public class A {\n    private int x;\n    public int get() {\n        return x;\n    }\n}\n"
JS = "const a = require('a');\nfunction b(c) {\n  return a(c) + 1;\n}\nmodule.exports = b;\n"
CSV = "name,city,age\nAnn,Rome,31\nBob,Oslo,42\nCy,Bern,27\nDi,Riga,35\n"
YAML = (
    "# settings\nserver:\n  host: localhost\n  port: 8080\n  tags:\n    - a\n    - b\ndebug: true\n"
)
TOML = '[server]\nhost = "localhost"\nport = 8080\n\n[log]\nlevel = "info"\n'
XML = '<?xml version="1.0"?>\n<a>\n  <b id="1">x</b>\n  <b id="2">y</b>\n</a>\n'
RECORDS = [
    {"id": i, "key": "sk-a\\b", "note": 'say "hi" \n\t \\n', "x": [1.50, None]} for i in range(8)
]

TRANSCRIPT = """\
Ann: Hello there, how are you?
Bob: Fine, thanks, let us begin.
Ann: The first point is the budget.
"""
LOG = """\
[2024-01-02 10:00:01,123] INFO Starting (app.Main)
[2024-01-02 10:00:02,456] WARN Slow disk (app.Io)
[2024-01-02 10:00:03,001] ERROR Failed to open /x (app.Io)
[2024-01-02 10:00:04,999] INFO Done (app.Main)
[2024-01-02 10:00:05,999] INFO Bye (app.Main)
"""
MARKDOWN = """\
# Title

- one item here
- another item: with colon

```python
x = 1
```

Some closing words.
"""
LETTER = "Dear Ann, thank you, Bob.\nWe met, as planned, in Rome.\nAll is well, so far, here."
WRAPPED = "<context>\nThe quick brown fox jumps over the lazy dog and goes home.\n</context>"


def squeeze(text: str, rate: float, hint: str | None = None) -> Compressed:
    return COMPRESSOR.compress([text], Budget(rate=rate), formats=[hint])[0]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (PYTHON, "code"),
        (GO, "code"),
        (C, "code"),
        (JAVA, "code"),
        (JS, "code"),
        (CSV, "csv"),
        (CSV.replace(",", "\t"), "csv"),
        (YAML, "yaml"),
        (TOML, "toml"),
        (XML, "xml"),
        (json.dumps(RECORDS), "json"),
        ("\n".join(map(json.dumps, RECORDS)), "jsonl"),
        (TRANSCRIPT, "prose"),
        (LOG, "log"),
        (MARKDOWN, "prose"),
        (WRAPPED, "prose"),
        ("", "prose"),
        (LETTER, "prose"),
    ],
)
def test_a_format_is_known_by_its_content(text: str, kind: str) -> None:
    assert detect(text) == kind


SHORT = {
    "python": "def area(r):\n    pi = 3.14\n    if r < 0:\n        raise Wrong(r)\n    return r\n",
    "sql": "SELECT name, age\nFROM users\nWHERE age > 30\nORDER BY name;\n",
    "sql in lower case": "select name, age\nfrom users\nwhere age > 30\norder by name;\n",
    "three rows": "id,n\n1,5\n2,7\n",
    "three rows with tabs": "id\tn\n1\t5\n2\t7\n",
    "git diff": "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n a\n-it is\n+it is not\n",
    "diff": "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n Hello there\n-you are not\n+you are\n",
    "subtitles": "1\n00:00:01,000 --> 00:00:04,200\nHi\n\n2\n00:00:05,000 --> 00:00:06,200\nBye.\n",
    "tex": "\\documentclass{article}\n\\begin{document}\nIt is not so.\n\\end{document}\n",
    "part of json": '"name": "Ann",\n  "tags": ["a", "b"]\n },\n {\n  "name": "Bob",\n  "a": 42,\n',
    "part of json on a line": 'nn", "age": 31}, {"name": "Bob", "age": 42}, {"name": "Cy", "a',
    "part of csv": "lo,42\nCy,Bern,27\nDi,Riga,35\nEd,Ulm,51\nFi,Rom,",
    "part of xml": '  <b id="1">x</b>\n  <b id="2">y</b>\n  <c>\n    <d>1</d>\n',
}


@pytest.mark.parametrize("text", SHORT.values(), ids=SHORT)
def test_data_without_a_file_name_is_whole_with_a_reason(text: str) -> None:
    result = squeeze(text, 0.5)
    assert result.text == text
    assert result.reason


@pytest.mark.parametrize(
    "text",
    [
        "Dear Ann,\nthank you, Bob,\nfor all, really.\n",
        "yes, no\nup, down\nin, out\n",
        "Ann: hello, you\nBob: hi, there\nAnn: bye, then\n",
        "if you go there:\nfor all of us:\nreturn to me\n",
        "Select a seat\nfrom those in front.\nThen sit down, please.\n",
        "The settings are\n" + "".join(f"\tname {i} is set to {i}\n" for i in range(6)),
        "--- \nA rule is above.\n--- \nAnd one is here.\n",
        'He said "yes", she said "no": it was "fine", they "agreed": "so be it".',
        "We met with a few people; we talked;\nthen we went home;\nand all was well.\n",
    ],
)
def test_prose_that_looks_a_little_like_data_stays_prose(text: str) -> None:
    assert detect(text) == "prose"


@pytest.mark.parametrize("rate", [0.3, 0.5, 0.7, 0.9])
@pytest.mark.parametrize("indent", ["", "    "])
def test_code_in_prose_without_a_fence_stays_whole_or_goes(rate: float, indent: str) -> None:
    code = "\n".join(indent + line for line in SHORT["python"].splitlines()).strip()
    text = (
        "Here is what we run on every one of the machines, as agreed last week with the team.\n\n"
        f"{indent}{code}\n\nIt must not be changed without telling the people who own it, please."
    )
    out = squeeze(text, rate).text
    assert code in out or "def" not in out


@pytest.mark.parametrize(
    ("hint", "kind"),
    [
        ("fix.diff", "diff"),
        ("fix.patch", "diff"),
        ("paper.tex", "tex"),
        ("film.srt", "subtitles"),
        ("page.html", "xml"),
        ("page.htm", "xml"),
        (".env", "toml"),
        ("app.ini", "toml"),
        ("app.cfg", "toml"),
        ("app.properties", "toml"),
        (".py", "code"),
        ("src/main.c", "code"),
        ("go", "code"),
        ("A.JAVA", "code"),
        ("data.csv", "csv"),
        (".yaml", "yaml"),
        ("x.unknown", "prose"),
        ("run.log", "log"),
    ],
)
def test_a_hint_decides(hint: str, kind: str) -> None:
    assert detect("some words that could be anything at all", hint) == kind


@pytest.mark.parametrize("text", [PYTHON, GO, C, JAVA, JS, CSV, YAML, TOML, XML])
@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9])
def test_strict_formats_come_back_whole_with_a_reason(text: str, rate: float) -> None:
    result = squeeze(text, rate)
    assert result.text == text
    assert result.reason is not None
    assert "whole" in result.reason


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.9, 1])
def test_json_keeps_its_value(rate: float) -> None:
    text = json.dumps(RECORDS, indent=4)
    result = squeeze(text, rate)
    assert json.loads(result.text) == RECORDS
    assert result.tokens_out < result.tokens_in or rate == 1
    assert bool(result.reason) == (result.tokens_out > int(rate * result.tokens_in))


def test_json_lines_keep_their_records() -> None:
    text = "\n\n".join(json.dumps(record, separators=(" , ", " : ")) for record in RECORDS) + "\n"
    result = squeeze(text, 0.3)
    assert [json.loads(line) for line in result.text.splitlines()] == RECORDS
    assert result.reason


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(st.lists(VALUES, min_size=1), st.floats(0.01, 1), st.sampled_from([None, 0, 1, "\t"]))
def test_any_json_survives(value: object, rate: float, indent: int | str | None) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    result = squeeze(text, rate, "x.json")
    if result.text or int(rate * result.tokens_in):
        assert json.loads(result.text) == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (json.dumps(RECORDS, indent=2)[:-40], "records keep their keys"),
        (json.dumps(RECORDS, indent=2)[40:], "does not parse"),
        ('{"a": 1, b c d, "e": 2}', "records keep their keys"),
    ],
)
def test_json_that_does_not_parse_and_has_no_long_texts_is_kept_whole(text: str, says: str) -> None:
    result = squeeze(text, 0.5)
    assert result.text == text
    assert says in (result.reason or "")


def test_what_is_whole_is_paid_first_from_a_joint_budget() -> None:
    prose = (
        "The meeting about the bridge was long and everyone said something about the costs. " * 4
    )
    code, text = COMPRESSOR.compress([PYTHON, prose], Budget(rate=0.7), joint=True)
    assert code.text == PYTHON
    assert code.tokens_out + text.tokens_out <= int(0.7 * (code.tokens_in + text.tokens_in))
    assert 0 < text.tokens_out < text.tokens_in


def test_what_is_whole_never_takes_all_of_a_joint_budget() -> None:
    prose = "The bridge costs 12 million euros and opens on 3 May 2027. " * 4
    code, text = COMPRESSOR.compress([PYTHON * 20, prose], Budget(rate=0.3), joint=True)
    assert code.reason
    assert 0.1 * text.tokens_in < text.tokens_out <= 0.3 * text.tokens_in


def test_a_fence_in_markdown_is_whole_and_outlives_prose() -> None:
    fence = "```python\nx = compute(1)\n```"
    prose = "Here are some words that nobody will ever miss at all."
    text = f"{prose}\n\n{fence}\n\nAnd some more of them."
    result = squeeze(text, 0.6)
    assert fence in result.text
    assert "```" not in squeeze(text, 0.3).text


@pytest.mark.parametrize(
    "text",
    [
        'id,comment\n1,"We would like to say not this"\n2,"Please never do that"\n',
        "id,comment\n1,We would like to say not this\n2,Please never do that\n3,unless open\n",
        '{\n  // the note\n  "name": "a",\n  "port": 80,\n  "list": [1, 2, 3]\n}',
        '{"name": "a", "port": 80, "list": [1, 2, 3], "items": [{"id": 1, "ok": true}, {"id": 2, ',
        '""\n',
    ],
)
def test_small_and_broken_data_is_whole(text: str) -> None:
    [result] = COMPRESSOR.compress([text], Budget(rate=0.5))
    assert result.text.strip() == text.strip()


def test_the_samples_are_what_they_claim() -> None:
    assert len(tomllib.loads(TOML)) == 2
    assert {len(row) for row in csv.reader(CSV.splitlines())} == {3}


YAMLS = {
    "kubernetes": """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app: web, tier: "front"}
spec:
  replicas: 3
  template:
    spec:
      containers:
        - name: web
          image: nginx:1.27
          args: ["--port", "8080"]
          env:
            - name: MODE
              value: production
""",
    "compose": """\
services:
  db:
    image: postgres:16
    volumes:
      - data:/var/lib/postgresql/data
    healthcheck:
      test: ["CMD", "pg_isready"]
      interval: 10s
volumes:
  data:
""",
    "rules in words": """\
mode: architect
instructions:
  general:
    status_prefix: "Begin every response with the status of the memory bank, active or inactive."
    memory_bank:
      - If the memory bank is there, read all of its files before you do anything else.
      - If it is not there, ask the user whether it should be made.
  tools:
    read_file: allowed
    write_file: not allowed
""",
    "block text": """\
name: build
description: |
  This job builds the wheel and the docs, and it uploads both of them to the
  server when nothing has failed.
on:
  push:
    branches: [main]
steps:
  - run: make wheel
  - run: make docs
""",
    "list": """\
- id: 1
  name: Ann
  role: admin
- id: 2
  name: Bob
  role: user
- id: 3
  name: Cy
  role: user
""",
    "documents": "---\na: 1\nb: [x, y]\nc: {d: e}\n---\na: 2\nb: []\nc: {}\n",
}


@pytest.mark.parametrize("rate", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("hint", [None, "settings.yaml"])
@pytest.mark.parametrize("text", YAMLS.values(), ids=YAMLS)
def test_yaml_still_loads_as_what_it_was(text: str, hint: str | None, rate: float) -> None:
    yaml: Any = pytest.importorskip("yaml")
    result = squeeze(text, rate, hint)
    assert list(yaml.safe_load_all(result.text)) == list(yaml.safe_load_all(text))
    assert result.text != text or result.reason


TABLE = "| item | price |\n|:---|---:|\n| rye | 2.50 |\n| oats \\| bran | [7.25](./p.md) |"
PAGE = f"""\
# The mill

We met at the mill, which is old, and ![Fig 1](./p_19_1.png) shows how it was built in 1871.

{TABLE}

More is in the [report of the year](https://example.org/r_(2024).pdf "Report"), on page 12, and in
[the notes][notes], which everybody should read before the next meeting takes place in May.

[![Build](https://ci.example.org/b.svg)](https://ci.example.org/)

[notes]: https://example.org/notes.md
"""


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_tables_links_and_images_are_whole_or_absent(rate: float) -> None:
    out = squeeze(PAGE, rate).text
    rows = [one for one in out.split("\n") if one.startswith("|")]
    assert rows == [row for row in TABLE.split("\n") if row in rows]
    assert not rows or rows[:2] == TABLE.split("\n")[:2]
    for whole, part in (
        ("![Fig 1](./p_19_1.png)", "p_19"),
        ('(https://example.org/r_(2024).pdf "Report")', "2024"),
        ("[![Build](https://ci.example.org/b.svg)](https://ci.example.org/)", "ci.example"),
        ("[the notes][notes]", "[notes]"),
        ("https://example.org/notes.md", "notes.md"),
    ):
        assert whole in out or part not in out.replace("[notes]:", "")
    assert out.count("](") == len(
        re.findall(r"\]\([^\s()]*(?:\(\w+\)[^\s()]*)?(?: \"\w+\")?\)", out)
    )
