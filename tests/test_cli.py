"""The command line as a script sees it: bytes, exit codes, stdout and stderr."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
LOG = "".join(
    f"2024-05-{day:02} 12:00:0{day % 10} worker-{day} finished job {day * 17} without any errors\n"
    for day in range(1, 29)
)
NOTE = "Um the meeting began at 9. Um Ann said that the total is 12 EUR. We all went home happy."
REPOSITORY_FILES = [
    "README.md",
    "LICENSE",
    "Makefile",
    "pyproject.toml",
    "middleware/types.py",
    "examples/shell_pipeline.sh",
    "examples/documents/law.md",
    "examples/documents/records.jsonl",
]


def run(
    *arguments: str, stdin: bytes = b"", check: int | None = 0
) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "headrace.middleware.cli", *arguments]
    result = subprocess.run(command, input=stdin, capture_output=True, timeout=300)
    if check is not None:
        assert result.returncode == check, result.stderr.decode()
    return result


def compressed(*arguments: str, stdin: bytes = b"") -> dict[str, Any]:
    result: dict[str, Any] = json.loads(run("compress", *arguments, "--json", stdin=stdin).stdout)
    return result


def test_json_has_exactly_the_promised_keys() -> None:
    result = compressed("-", "--rate", "0.5", stdin=NOTE.encode())
    assert list(result) == [
        "text",
        "tokens_in",
        "tokens_out",
        "rate",
        "spans",
        "scores",
        "notes",
        "seconds",
        "compressor",
        "because",
        "reason",
    ]
    assert result["text"] == "".join(NOTE[start:end] for start, end in result["spans"])
    assert result["tokens_out"] <= 0.5 * result["tokens_in"]


def test_text_goes_to_stdout_and_numbers_to_stderr() -> None:
    result = run("compress", "--rate", "0.5", stdin=LOG.encode())
    assert b"tokens" in result.stderr
    assert len(result.stdout) < len(LOG)
    assert b"worker" in result.stdout


@pytest.mark.parametrize(
    "text", ["a\r\nb\r\n", "\ufeffcaf\u00e9\u2028x", "no newline", "\n\n", " "]
)
def test_rate_one_is_the_same_bytes(text: str) -> None:
    assert run("compress", "--rate", "1", stdin=text.encode()).stdout == text.encode()


def test_an_empty_input_is_said_and_is_no_failure() -> None:
    result = run("compress", stdin=b"")
    assert result.stdout == b""
    assert b"empty" in result.stderr


@pytest.mark.parametrize("name", REPOSITORY_FILES)
@pytest.mark.parametrize("rate", ["0.9", "0.5", "0.2", "0"])
def test_real_files_of_many_kinds(name: str, rate: str) -> None:
    path = ROOT / name
    text = path.read_text(encoding="utf-8")
    result = run("compress", str(path), "--rate", rate, "--json")
    found = json.loads(result.stdout)
    assert found["text"] == "".join(text[start:end] for start, end in found["spans"])
    if b"note:" not in result.stderr:
        assert found["tokens_out"] <= float(rate) * found["tokens_in"]
    elif path.suffix in (".py", ".toml"):
        assert found["text"] == text
    if path.suffix == ".jsonl":
        rows = [json.loads(line) for line in found["text"].splitlines() if line]
        for new, old in zip(rows, map(json.loads, text.splitlines()), strict=True):
            words = iter(old.pop("text").split())
            assert all(
                any(word.strip(".,") in other for other in words)
                for word in new.pop("text").split()
            )
            assert new == old


def test_json_stays_json_and_says_why_it_is_not_shorter() -> None:
    data = {"rows": [{"id": i, "name": f"item {i}", "note": 'a "b" \n c'} for i in range(8)]}
    text = json.dumps(data, indent=2)
    result = run("compress", "--rate", "0.1", stdin=text.encode())
    assert json.loads(result.stdout) == data
    assert b"note:" in result.stderr


def test_csv_stays_whole() -> None:
    out = io.StringIO()
    csv.writer(out).writerows([["id", "price"]] + [[i, f"{i}.50"] for i in range(50)])
    result = run("compress", "--rate", "0.3", stdin=out.getvalue().encode())
    assert result.stdout.decode() == out.getvalue()
    assert b"note:" in result.stderr


def test_keep_and_target_tokens() -> None:
    result = compressed("--target-tokens", "60", "--keep", r"job 85\b", stdin=LOG.encode())
    assert "job 85" in result["text"]
    assert result["tokens_out"] <= 60


def test_a_question_decides_what_stays() -> None:
    text = LOG + "worker-77 stopped: disk full\n"
    with_question = compressed(
        "--rate", "0.1", "--question", "Why did worker-77 stop?", stdin=text.encode()
    )
    assert "disk full" in with_question["text"]


def test_forced_words_stay_and_go() -> None:
    flags = ["--rate", "0.5", "--force-keep", "happy", "--force-drop", "Um", "--keep-digits"]
    result = compressed(*flags, stdin=NOTE.encode())
    assert "happy" in result["text"]
    assert "Um" not in result["text"]
    assert {"9", "12"} <= set(result["text"].replace(".", " ").split())
    assert result["tokens_out"] <= 0.5 * result["tokens_in"]
    laughs = ["--rate", "0.5", "--force-keep", "ha"]
    assert compressed(*laughs, stdin=b"ha ha ha he said to us")["text"].count("ha") == 3
    one = compressed(*laughs, "--drop-consecutive", stdin=b"ha ha ha he said to us")
    assert one["text"].count("ha") == 1


def test_quality_keeps_the_share_of_importance_that_was_asked_for() -> None:
    result = compressed("--quality", "0.6", stdin=NOTE.encode())
    stays = [
        any(a <= start and end <= b for a, b in result["spans"])
        for start, end, _ in result["scores"]
    ]
    scores = [score for _, _, score in result["scores"]]
    kept = sum(score for score, stay in zip(scores, stays, strict=True) if stay)
    assert 0.6 <= kept / sum(scores) < 0.7


def test_segments_are_markup_only_when_asked_for() -> None:
    text = f"<headrace keep>Um {{x < 1}}</headrace> {NOTE}"
    with_segments = run("compress", "--segments", "--rate", "0.3", stdin=text.encode()).stdout
    assert with_segments.startswith(b"Um {x < 1} ")
    assert b"headrace" not in with_segments
    assert run("compress", "--rate", "1", stdin=text.encode()).stdout == text.encode()
    nested = b"a <headrace keep>b <headrace rate=1>c</headrace>"
    result = run("compress", "--segments", stdin=nested, check=2)
    assert b"line 1, column 20" in result.stderr
    assert result.stderr.count(b"\n") == 1


def test_recover_puts_back_what_was_cut_from_a_phrase(tmp_path: Path) -> None:
    original, short = tmp_path / "original.txt", tmp_path / "short.json"
    original.write_text("The big red bridge was built in 1931.")
    options = ("--rate", "0.6", "--json", "--compressor", "lexical")
    short.write_bytes(run("compress", str(original), *options).stdout)
    plain = tmp_path / "short.txt"
    plain.write_text(json.loads(short.read_bytes())["text"])
    assert "was" not in plain.read_text()
    for file in (short, plain):
        files = ["--original", str(original), "--compressed", str(file)]
        assert run("recover", *files, "Bridge built 1931!").stdout == b"Bridge built in 1931!"
        assert run("recover", *files, stdin=b"").stdout == b""
    plain.write_text("a cat")
    result = run("recover", *files, "x", check=2)
    assert b"no place for 'cat'" in result.stderr


def test_html_is_one_page_and_overwrites_only_itself(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    for _ in range(2):
        run("compress", "--rate", "0.5", "--html", str(page), stdin=b"<b>one</b> & two three four")
    html = page.read_text()
    assert "&lt;b&gt;" in html
    assert "http://" not in html
    assert "https://" not in html
    page.write_text("mine")
    result = run("compress", "--html", str(page), stdin=b"x y", check=1)
    assert b"not ours" in result.stderr
    assert page.read_text() == "mine"


def big(path: Path) -> None:
    with path.open("wb") as file:
        for _ in range(50):
            file.write(b"word " * 200_000)


BAD_FILES = {
    "missing": (None, b"no such file"),
    "latin1": (b"caf\xe9 au lait", b"not UTF-8"),
    "binary": (b"\x7fELF\0\0", b"binary"),
    "folder": ("folder", b"folder"),
    "big": ("big", b"the limit"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_bad_file_gets_one_line_with_the_reason(kind: str, tmp_path: Path) -> None:
    content, says = BAD_FILES[kind]
    path = tmp_path / kind
    if content == "folder":
        path.mkdir()
    elif content == "big":
        big(path)
    elif isinstance(content, bytes):
        path.write_bytes(content)
    result = run("compress", str(path), check=1)
    assert says in result.stderr
    assert result.stderr.count(b"\n") == 1
    assert result.stdout == b""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--rate", "1.5"], b"1.5"),
        (["--rate", "-0.1"], b"-0.1"),
        (["--target-tokens", "-5"], b"-5"),
        (["--threshold", "7"], b"7"),
        (["--quality", "1.2"], b"1.2"),
        (["--quality", "0.5", "--rate", "0.5"], b"quality"),
        (["--force-keep", ""], b"empty string"),
        (["--segments", "--keep", "(a"], b"(a"),
        (["--rate", "0.5", "--target-tokens", "5"], b"rate"),
        (["--keep", "("], b"("),
        (["--rate", "many"], b"--rate"),
        (["--no-such-flag"], b"no-such-flag"),
    ],
)
def test_bad_usage_is_exit_2_with_the_value(arguments: list[str], says: bytes) -> None:
    result = run("compress", *arguments, stdin=b"some text", check=2)
    assert says in result.stderr


def test_an_unknown_model_is_one_line_with_the_fix() -> None:
    os.environ["HF_HUB_OFFLINE"] = "1"
    result = run("compress", "--compressor", "nobody/nothing", stdin=b"some text", check=1)
    assert b"nobody/nothing" in result.stderr
    assert result.stderr.count(b"\n") == 1
    assert b"Traceback" not in result.stderr
    debug = run("compress", "--compressor", "nobody/nothing", "--debug", stdin=b"x", check=1)
    assert b"Traceback" in debug.stderr


def test_rerank_gives_the_same_lines_best_first() -> None:
    records = [
        {"id": 1, "text": "The weather was fine.", "extra": {"a": [1]}},
        {"id": "b", "text": "The runner stone weighs 1,200 kilograms.", "title": "Stones"},
    ]
    lines = "\n".join(json.dumps(record) for record in records)
    result = run(
        "rerank", "--question", "How heavy is the stone?", "--method", "bm25", stdin=lines.encode()
    )
    out = [json.loads(line) for line in result.stdout.splitlines()]
    assert [record["id"] for record in out] == ["b", 1]
    assert out[0]["score"] > out[1]["score"]
    assert [{k: v for k, v in r.items() if k != "score"} for r in out] == records[::-1]


@pytest.mark.parametrize(
    ("arguments", "stdin", "code", "says"),
    [
        (["--question", "x"], b'{"id": 1}', 1, b"line 1"),
        (["--question", "x"], b"not json", 1, b"line 1"),
        (["--question", "x", "--top-k", "-2"], b'{"text": "a"}', 2, b"-2"),
        (["--question", " "], b'{"text": "a"}', 2, b"question"),
        ([], b'{"text": "a"}', 2, b"question"),
        (["--question", "x", "--method", "nobody/nothing"], b'{"text": "a"}', 1, b"nobody"),
    ],
)
def test_rerank_refuses_bad_input(
    arguments: list[str], stdin: bytes, code: int, says: bytes
) -> None:
    result = run("rerank", *arguments, stdin=stdin, check=code)
    assert says in result.stderr.lower()
    assert result.stdout == b""


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--backend", "http://127.0.0.1:9/v1"], 1, b"127.0.0.1:9"),
        (["--backend", "no-such-engine"], 2, b"no-such-engine"),
        (["--documents", "no/such/folder"], 1, b"no such file"),
        (["--schema", "no/such/schema.json"], 2, b"schema"),
        (["--schema", "LICENSE"], 2, b"no JSON"),
        (["--regex", "(", "--max-tokens", "5"], 2, b"regular expression"),
        (["--regex", "a", "--choice", "b"], 2, b"exclude"),
        (["--max-tokens", "0"], 2, b"max_tokens"),
        (["--plan", "sometimes"], 2, b"sometimes"),
        (["--rate", "3"], 2, b"3"),
        (["--when", "pays"], 2, b"give a rate"),
    ],
)
def test_ask_refuses_bad_input(arguments: list[str], code: int, says: bytes) -> None:
    result = run("ask", "Who?", *arguments, check=code)
    assert says in result.stderr
    assert b"Traceback" not in result.stderr
    assert result.stdout == b""


def test_doctor_lists_what_is_here_and_how_to_fix_what_is_not() -> None:
    result = run("doctor", "--backend", "http://127.0.0.1:9/v1", "--json", check=1)
    checks = {check["name"]: check for check in json.loads(result.stdout)}
    assert checks["torch"]["is_ok"]
    dead = checks["http://127.0.0.1:9/v1"]
    assert not dead["is_ok"]
    assert dead["fix"]
    assert any("SmolLM2" in name for name in checks)


def test_a_reader_that_has_enough_is_no_error() -> None:
    command = f"{sys.executable} -m headrace.middleware.cli compress --rate 1 | head -c 5"
    text = (LOG * 200).encode()
    result = subprocess.run(command, shell=True, input=text, capture_output=True)
    assert result.stdout == LOG[:5].encode()
    assert b"Traceback" not in result.stderr
    assert b"Broken" not in result.stderr


def test_version() -> None:
    assert run("--version").stdout.startswith(b"headrace ")


def test_a_record_comes_out_as_it_was_written() -> None:
    line = '{"text":"a stone",  "price": 1.10, "big": 12345678901234567890, "é": "\\u00e9"}'
    out = run("rerank", "--question", "stone", "--method", "bm25", stdin=line.encode()).stdout
    assert out.decode().startswith(line[:-1])
    assert json.loads(out)["score"] >= 0


@pytest.mark.parametrize("stdin", [b"", b" \n"])
def test_an_empty_question_is_refused(stdin: bytes) -> None:
    assert b"question is empty" in run("ask", "-", stdin=stdin, check=2).stderr


def test_help_names_every_command() -> None:
    out = run("--help").stdout
    assert all(name in out for name in (b"compress", b"rerank", b"ask", b"doctor"))


def test_wishes_without_effect_are_said() -> None:
    text = b"<headrace keep>Ann</headrace> paid the bill in full on Monday."
    done = run("compress", "--rate", "0.6", "--force-keep", "Rome", stdin=text)
    assert b"'Rome' is not in the text" in done.stderr
    assert b"--segments" in done.stderr
