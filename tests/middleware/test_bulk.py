"""Bulk compression without a cluster: rows in, rows out, what is kept, what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.middleware.bulk import compress_dataset
from headrace.middleware.bulk_jsonl import JsonLines, with_text
from headrace.middleware.bulk_rows import Columns, format_of
from headrace.middleware.bulk_store import Done, Store
from headrace.middleware.bulk_worker import Worker
from headrace.middleware.errors import HeadraceError, InvalidRequest
from headrace.middleware.files import FileError

TEXT = "The miller ground 14 sacks of rye on Monday, and as it happens it also rained a little. "
OPTIONS: dict[str, Any] = {"compressor": "lexical", "rate": 0.5}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=6,
)


def store_of(source: Path, *, batch_size: int = 3, **columns: Any) -> Store:
    form = format_of([source])
    asked = {
        "sources": [[str(source), 0, 0]],
        "columns": {"text": "text", "question": None, **columns},
        "batch_size": batch_size,
        "options": {},
    }
    folder = source.with_name("parts")
    return Store.begin(folder, asked, lambda: form.shards(str(source), batch_size))


def run(store: Store, **options: Any) -> Done:
    worker = Worker(str(store.folder), {**OPTIONS, **options})
    done = [worker.run(number) for number in range(len(store.shards))]
    return Done(sum(one.rows for one in done), sum(one.bad for one in done))


@given(st.dictionaries(st.text(), JSON, max_size=4), st.text(), st.text(), st.booleans())
def test_a_new_text_changes_nothing_else_in_a_line(
    rest: dict[str, Any], old: str, new: str, is_ascii: bool
) -> None:
    line = json.dumps({**rest, "text": old}, ensure_ascii=is_ascii)
    changed = with_text(line, "text", new)
    assert json.loads(changed) == {**rest, "text": new}
    assert with_text(changed, "text", old).encode() == line.encode() or is_ascii


def test_numbers_keep_the_digits_that_were_written() -> None:
    line = '{"price": 1.10,  "text" : "a", "big": 12345678901234567890.0, "text2": "text"}'
    assert with_text(line, "text", "b") == line.replace('"a"', '"b"')


@given(st.lists(st.sampled_from(['{"text": "a"}', "", "  ", "no"])), st.integers(1, 4))
def test_shards_hold_every_line_once(lines: list[str], size: int) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "in.jsonl"
        path.write_bytes("\n".join(lines).encode())
        shards = list(JsonLines().shards(str(path), size))
        found = [JsonLines().read(shard, Columns("text")) for shard in shards]
    numbers = sorted(
        [row.place for rows, _ in found for row in rows] + [b.row for _, bad in found for b in bad]
    )
    assert numbers == [n for n, line in enumerate(lines, 1) if line.strip()]
    assert all(shard.rows == len(r) + len(b) for shard, (r, b) in zip(shards, found, strict=True))
    assert all(shard.rows <= size for shard in shards)


def test_a_run_writes_each_row_once_and_says_what_is_wrong_with_the_others(tmp_path: Path) -> None:
    source, target, bad = (tmp_path / name for name in ("in.jsonl", "out.jsonl", "bad.jsonl"))
    lines = [json.dumps({"id": n, "text": f"{n} {TEXT}"}) for n in range(5)]
    wrong = ['{"id": 9}', '{"text": null}', '{"text": 7}', "[1]", "{"]
    source.write_bytes(b"\xef\xbb\xbf" + "\n".join([*lines, "", *wrong]).encode() + b"\n\xff\n")
    store = store_of(source)
    assert run(store) == Done(5, 6)
    store.join(target, bad)
    rows = [json.loads(line) for line in target.read_text().splitlines()]
    assert [row["id"] for row in rows] == [0, 1, 2, 3, 4]
    assert all(row["text"].startswith(f"{row['id']} ") for row in rows)
    assert all(len(row["text"]) < len(TEXT) for row in rows)
    said = [json.loads(line) for line in bad.read_text().splitlines()]
    assert [one["row"] for one in said] == [7, 8, 9, 10, 11, 12]
    reasons = " | ".join(one["reason"] for one in said)
    for words in (
        'no "text"; its keys are id',
        "null",
        "is a int",
        "a JSON list",
        "no JSON",
        "UTF-8",
    ):
        assert words in reasons
    assert said[0]["record"] == '{"id": 9}'
    assert not store.folder.exists()


def test_each_row_has_its_own_question(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    text = "Ann sold the red barn. Bob bought a blue boat. It rained on the old mill. " * 2
    rows = [{"text": text, "q": q} for q in ("Who sold a barn?", "Who bought a boat?", None)]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    store = store_of(source, question="q")
    run(store, rate=0.4)
    store.join(tmp_path / "out.jsonl", tmp_path / "bad.jsonl")
    barn, boat, plain = [
        json.loads(one) for one in (tmp_path / "out.jsonl").read_text().splitlines()
    ]
    assert barn["text"] != boat["text"]
    assert "barn" in barn["text"]
    assert "boat" in boat["text"]
    assert plain["q"] is None


def test_a_row_that_spoils_the_call_spoils_no_other(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    texts = [TEXT, f"<headrace rate=2>{TEXT}</headrace>", TEXT]
    source.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    store = store_of(source)
    assert run(store, segments=True) == Done(2, 1)
    store.join(tmp_path / "out.jsonl", tmp_path / "bad.jsonl")
    assert json.loads((tmp_path / "bad.jsonl").read_text())["row"] == 2


def test_a_shard_that_is_done_is_not_done_again(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps({"text": TEXT}) + "\n" for _ in range(5)))
    store = store_of(source)
    run(store)
    part = store.folder / "000000.jsonl"
    part.write_text("kept\n")
    (store.folder / "000001.done").unlink()  # lost after its work, before it was said
    run(store_of(source))
    assert part.read_text() == "kept\n"
    assert len((store.folder / "000001.jsonl").read_text().splitlines()) == 2


def test_a_source_that_changes_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps({"text": TEXT}) + "\n" for _ in range(3)))
    store = store_of(source)
    source.write_text(json.dumps({"text": TEXT * 4}) + "\n")
    with pytest.raises(HeadraceError, match="leave the source alone"):
        run(store)


def test_a_run_goes_on_only_with_what_was_asked(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"text": TEXT}) + "\n")
    store_of(source)
    with pytest.raises(InvalidRequest, match="with other batch_size"):
        store_of(source, batch_size=4)
    Store.discard(tmp_path / "parts")
    store_of(source, batch_size=4)


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps({"text": TEXT}) + "\n")
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "mine.txt").write_text("mine")
    Store.discard(tmp_path / "parts")
    with pytest.raises(FileError, match="not ours"):
        store_of(source)
    assert (tmp_path / "parts" / "mine.txt").read_text() == "mine"


def test_parquet_keeps_types_and_groups(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow.parquet as parquet  # type: ignore[import-untyped, unused-ignore]

    source, target = tmp_path / "in.parquet", tmp_path / "out.parquet"
    table = arrow.table(
        {
            "id": arrow.array(range(7), arrow.int16()),
            "text": arrow.array([TEXT, TEXT, None, TEXT, "", TEXT, TEXT], arrow.large_string()),
            "when": arrow.array(range(7), arrow.timestamp("ms", tz="UTC")),
            "tags": arrow.array([[n, None] for n in range(7)], arrow.list_(arrow.int8())),
        }
    ).replace_schema_metadata({"made": "here"})
    parquet.write_table(table, source, row_group_size=5)
    store = store_of(source)
    assert [(s.group, s.start, s.first, s.rows) for s in store.shards] == [
        (0, 0, 1, 3),
        (0, 3, 4, 2),
        (1, 0, 6, 2),
    ]
    assert run(store) == Done(6, 1)
    store.join(target, tmp_path / "bad.jsonl")
    found = parquet.read_table(target)
    assert found.schema.equals(table.schema)
    assert found.schema.metadata[b"made"] == b"here"
    kept = table.filter(arrow.array([n != 2 for n in range(7)]))
    assert found.drop(["text"]).equals(kept.drop(["text"]))
    texts = found["text"].to_pylist()
    assert texts[3] == ""
    assert all(0 < len(text) < len(TEXT) for text in texts if text)
    bad = json.loads((tmp_path / "bad.jsonl").read_text())
    assert (bad["row"], bad["record"]["id"]) == (3, 2)


def test_parquet_says_at_once_what_no_row_can_have(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    import pyarrow.parquet as parquet  # type: ignore[import-untyped, unused-ignore]

    path = tmp_path / "in.parquet"
    parquet.write_table(arrow.table({"text": ["a"], "n": [1]}), path)
    form = format_of([path])
    with pytest.raises(FileError, match="no column 'body'; it has text, n"):
        form.check([str(path)], Columns("body"))
    with pytest.raises(FileError, match="holds int64, not text"):
        form.check([str(path)], Columns("n"))
    path.write_bytes(b"no table")
    with pytest.raises(FileError, match="cannot read"):
        form.check([str(path)], Columns("text"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rate": 2}, "rate must be in"),
        ({"batch_size": 0}, "batch_size is a whole number"),
        ({"concurrency": 1.5}, "concurrency is a whole number"),
        ({"num_gpus": -1}, "num_gpus is a number"),
        ({"formats": ["json"]}, "formats is for single texts"),
        ({"nonsense": 1}, "no option 'nonsense'"),
        ({"target": "out.parquet"}, "of one format"),
        ({"target": "out.csv"}, "neither JSON Lines nor Parquet"),
        ({"target": "in.jsonl"}, "exists and is not overwritten"),
        ({"target": "no/out.jsonl"}, "is no folder"),
        ({"source": "no.jsonl"}, "no such file"),
        ({"source": []}, "at least one file"),
        ({"source": ["in.jsonl", "in.jsonl"]}, "there twice"),
        ({"bad_rows": "out.jsonl"}, "the target itself"),
    ],
)
def test_what_makes_no_sense_is_said_in_one_line(
    change: dict[str, Any], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray", reason="ray is not installed")
    monkeypatch.chdir(tmp_path)
    Path("in.jsonl").write_text(json.dumps({"text": TEXT}) + "\n")
    call: dict[str, Any] = {"source": "in.jsonl", "target": "out.jsonl", **OPTIONS, **change}
    with pytest.raises(HeadraceError, match=said) as caught:
        compress_dataset(**call)
    assert "\n" not in str(caught.value)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_without_ray_the_error_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(HeadraceError, match=r"pip install 'headrace\[ray\]'"):
        compress_dataset(tmp_path / "in.jsonl", tmp_path / "out.jsonl", **OPTIONS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["in.jsonl", "-o", "out.jsonl"], "--output goes with --ray"),
        (["in.jsonl", "--no-resume"], "--no-resume goes with --ray"),
        (["in.jsonl", "--ray"], "name it with --output"),
        (["-", "--ray", "-o", "out.jsonl"], "not standard input"),
        (["in.jsonl", "--ray", "-o", "o.jsonl", "--html", "o.html"], "leave it out with --ray"),
    ],
)
def test_the_command_says_what_goes_together(arguments: list[str], said: str) -> None:
    command = [sys.executable, "-m", "headrace.middleware.cli", "compress", *arguments]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 2
    assert said in result.stderr
