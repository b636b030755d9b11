from __future__ import annotations

import csv
import json

from hypothesis import given
from hypothesis import strategies as st

from headrace.middleware.passages import passages


@given(st.text(alphabet="ab \n\r\u2028", max_size=200), st.integers(1, 50))
def test_passages_joined_are_the_text(text: str, size: int) -> None:
    assert "".join(passages(text, size)) == text


def test_passages_end_at_paragraphs() -> None:
    text = "one one\n\ntwo two\n\nthree three\n"
    assert list(passages(text, 12)) == ["one one\n\n", "two two\n\n", "three three\n"]


RECORDS = st.lists(st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=9)))


@given(RECORDS, st.integers(1, 60), st.sampled_from([None, 2]))
def test_json_is_cut_between_records(records: list[object], size: int, indent: int | None) -> None:
    text = json.dumps(records, indent=indent)
    found = [record for piece in passages(text, size, "a.json") for record in json.loads(piece)]
    assert found == records


def test_json_that_is_no_array_or_broken_stays_whole() -> None:
    for text in ('{"a": [1, 2, 3], "b": "x"}', "[1, 2,, oops", "nonsense, not JSON"):
        assert list(passages(text, 5, "a.json")) == [text]


@given(
    st.lists(st.text(alphabet='ab,"\n ', max_size=6), min_size=1, max_size=9), st.integers(1, 40)
)
def test_csv_is_cut_between_rows_under_its_heading(cells: list[str], size: int) -> None:
    import io

    out = io.StringIO()
    csv.writer(out).writerows([["id", "note"], *([i, cell] for i, cell in enumerate(cells))])
    rows: list[list[str]] = []
    for piece in passages(out.getvalue(), size, "a.csv"):
        head, *rest = list(csv.reader(io.StringIO(piece, newline="")))
        assert head == ["id", "note"]
        rows += rest
    assert rows == list(csv.reader(io.StringIO(out.getvalue(), newline="")))[1:]
