from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.middleware.files import (
    GENERATOR,
    FileError,
    decode,
    read_documents,
    read_records,
    read_text,
    with_score,
    write_text,
)


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0")))
def test_text_is_read_exactly_as_it_is(text: str) -> None:
    assert decode(text.encode(), "x") == text


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"caf\xe9", "byte 0xe9 at offset 3"),
        (b"PK\x03\x04\x00\x00", "binary"),
        ("text".encode("utf-16"), "UTF-16"),
        (b"x" * 101, "the limit"),
    ],
)
def test_what_is_no_text_is_refused_with_the_place(data: bytes, says: str) -> None:
    with pytest.raises(FileError, match=says):
        decode(data, "some.txt", max_bytes=100)


def test_missing_files_and_folders(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no such file"):
        read_text(str(tmp_path / "none.txt"))
    with pytest.raises(FileError, match="folder"):
        read_text(str(tmp_path))
    with pytest.raises(FileError, match="cannot read"):
        read_text("a\0b")


def test_a_folder_is_read_whole_and_its_bad_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.md").write_text("Alpha.")
    (tmp_path / "sub" / "b.txt").write_text("Beta.")
    (tmp_path / "c.bin").write_bytes(b"\0\1")
    (tmp_path / ".hidden").write_text("no")
    (tmp_path / "d.jsonl").write_text('{"text": "Delta.", "id": 7, "title": "D", "year": 2020}\n')
    skipped: list[str] = []
    documents = read_documents([str(tmp_path)], on_skip=skipped.append)
    assert [(d.id, d.text) for d in documents] == [
        ("a.md#1", "Alpha."),
        ("7", "Delta."),
        ("sub/b.txt#1", "Beta."),
    ]
    assert documents[1].metadata == {"year": 2020}
    assert len(skipped) == 1
    assert "c.bin" in skipped[0]


def test_a_file_named_by_the_user_must_be_readable(tmp_path: Path) -> None:
    path = tmp_path / "c.bin"
    path.write_bytes(b"\0\1")
    with pytest.raises(FileError, match="binary"):
        read_documents([str(path)], on_skip=pytest.fail)


def test_records_are_split_at_newlines_only() -> None:
    records = [{"text": "a\u2028b\u0085c"}, {"text": "d\r\n"}]
    text = "\n\n".join(json.dumps(record, ensure_ascii=False) for record in records)
    found = read_records("\ufeff" + text + "\r\n", "x")
    assert [record for _, record in found] == records


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{nope", "line 2 is no JSON"),
        ("[1]", "line 2 is a JSON list"),
        ('{"id": "1", "body": "x"}', 'line 2 has no "text" that is a string'),
        ('{"text": 5}', 'line 2 has no "text"'),
    ],
)
def test_a_bad_record_is_named_by_its_line(line: str, says: str) -> None:
    with pytest.raises(FileError, match=says):
        read_records('{"text": "fine"}\n' + line, "x.jsonl")


def test_only_our_own_pages_are_written_again(tmp_path: Path) -> None:
    ours, theirs = tmp_path / "ours.html", tmp_path / "theirs.html"
    write_text(ours, f"<!doctype html>{GENERATOR}first")
    write_text(ours, f"<!doctype html>{GENERATOR}second")
    assert ours.read_text().endswith("second")
    theirs.write_text("precious")
    with pytest.raises(FileError, match="not ours"):
        write_text(theirs, "x")
    assert theirs.read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["ours.html", "theirs.html"]


def test_a_page_cannot_be_written_into_nothing(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="no folder"):
        write_text(tmp_path / "none" / "x.html", "x")
    with pytest.raises(FileError, match="is a folder"):
        write_text(tmp_path, "x")


def test_a_score_takes_the_place_of_another_and_all_else_is_the_same_bytes() -> None:
    rest = '"n": [1e400, -0, 1.10, ' + "9" * 40 + '], "k": 1, "k": {"score": 3}, "text": "\\u00e9"'
    line = f'{{"score": {{"by": [1, "}}"]}}, {rest}, "score": 2}}'
    assert with_score(line, json.loads(line), 0.5) == f'{{"score": 0.5, {rest}, "score": 0.5}}'
