"""Bulk compression on a cluster of two workers, one of which is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.middleware.bulk import compress_dataset
from headrace.middleware.bulk_ray import start
from headrace.middleware.errors import BackendError

ray = pytest.importorskip("ray", reason="ray is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # Ray's own, some of them from other threads
]
TEXT = "The miller ground 14 sacks of rye on Monday, and as it happens it also rained a little. "


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    try:
        start(ray, num_cpus=2, include_dashboard=False, log_to_driver=False)
    except BackendError as error:  # a busy machine: Ray's processes wait 30 s for one another
        pytest.skip(str(error))
    yield
    ray.shutdown()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.jsonl"
    rows = ({"id": n, "text": f"{n}: {TEXT * 10}", "price": 1.1} for n in range(200))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"id": 200}\n')
    return path


def workers() -> list[int]:
    """Return the processes of this test's cluster that run a pool's actor."""
    parents: dict[int, int] = {}
    titles: dict[int, str] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                stat = (folder / "stat").read_text().rpartition(")")[2].split()
                titles[int(folder.name)] = (folder / "cmdline").read_text().replace("\0", " ")
            except OSError:
                continue
            parents[int(folder.name)] = int(stat[1])

    def is_ours(pid: int) -> bool:
        while pid in parents and pid != os.getpid():
            pid = parents[pid]
        return pid == os.getpid()

    return [pid for pid, title in titles.items() if "ray::MapWorker" in title and is_ours(pid)]


def ids(path: Path) -> list[int]:
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


def test_a_killed_worker_loses_no_row(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"
    killed: list[tuple[int, int]] = []

    def kill_one(done: int, total: int) -> None:
        if not killed and (found := workers()):
            os.kill(found[0], signal.SIGKILL)
            killed.append((done, found[0]))

    report = compress_dataset(
        source,
        target,
        compressor="lexical",
        rate=0.5,
        batch_size=5,
        concurrency=2,
        progress=kill_one,
    )
    assert killed, "no worker was found while work was left"
    assert killed[0][0] < 201
    assert killed[0][1] not in workers()
    assert ids(target) == list(range(200))
    assert ids_of_bad(target) == [201]
    assert (report.rows, report.bad_rows, report.resumed_rows) == (200, 1, 0)
    assert 0 < report.tokens_out <= report.tokens_in / 2


def test_a_stopped_run_goes_on_where_it_was(source: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.jsonl"

    def stop(done: int, total: int) -> None:
        if done >= 40:
            raise KeyboardInterrupt

    options: dict[str, Any] = {
        "compressor": "lexical",
        "rate": 0.5,
        "batch_size": 10,
        "concurrency": 2,
    }
    with pytest.raises(KeyboardInterrupt):
        compress_dataset(source, target, progress=stop, **options)
    assert not target.exists()
    seen: list[int] = []
    report = compress_dataset(source, target, progress=lambda done, _: seen.append(done), **options)
    assert 40 <= report.resumed_rows < 201
    assert min(seen) > report.resumed_rows
    assert max(seen) == 201
    assert ids(target) == list(range(200))
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "in.jsonl",
        "out.jsonl",
        "out.jsonl.bad.jsonl",
    ]


@pytest.mark.model
def test_the_embedded_model_compresses_parquet(tmp_path: Path) -> None:
    import pyarrow  # type: ignore[import-untyped, unused-ignore]
    import pyarrow.parquet as parquet  # type: ignore[import-untyped, unused-ignore]

    text = "Ann sold the red barn in May. Bob bought a blue boat for 300 EUR. It rained a lot. "
    table = pyarrow.table({"n": [1, 2], "body": [text, text], "q": ["Who sold?", "Which boat?"]})
    parquet.write_table(table, tmp_path / "in.parquet")
    report = compress_dataset(
        tmp_path / "in.parquet",
        tmp_path / "out.parquet",
        column="body",
        question_column="q",
        compressor="mini",
        concurrency=1,
    )
    found = parquet.read_table(tmp_path / "out.parquet")
    assert (report.rows, report.bad_rows_file) == (2, None)
    assert found["n"].to_pylist() == [1, 2]
    assert all(0 < len(body) < len(text) for body in found["body"].to_pylist())


def test_the_command_starts_a_cluster_of_its_own(tmp_path: Path) -> None:
    source, target = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("".join(json.dumps({"id": n, "text": TEXT}) + "\n" for n in range(30)))
    command = [sys.executable, "-m", "headrace.middleware.cli", "compress", str(source), "--ray"]
    command += ["-o", str(target), "--json", "--compressor", "lexical", "--concurrency", "1"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert (report["rows"], report["bad_rows"]) == (30, 0)
    assert report["tokens_out"] <= 0.5 * report["tokens_in"]
    assert ids(target) == list(range(30))


def ids_of_bad(target: Path) -> list[int]:
    return [
        json.loads(line)["row"] for line in Path(f"{target}.bad.jsonl").read_text().splitlines()
    ]
