from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compressors import split

WHOLE = [
    "1,234.56",
    "$1,234.56",
    "12 %",
    "5 kg",
    "12 May 2021",
    "May 12, 2021",
    "2021-05-12",
    "10:30 AM",
    "v1.2.3-rc1",
    "KA-01-HH-1234",
    "7F3A-99B",
    "DE44 5001 0517 5407 3249 31",
    "123e4567-e89b-12d3-a456-426614174000",
    "0xDEADBEEF",
    "aGVsbG8gd29ybGQhIQ==",
    "https://example.com/a?b=(c)&d=1,2",
    "ann.lee+x@mail.example.co.uk",
    "/usr/local/lib/python3.11/site.py",
    "C:\\Users\\Ann\\notes.txt",
    "`x = a.b(c)`",
    "{{ user.name }}",
    "{name}",
    "${HOME}",
    "<|endoftext|>",
    "[SEP]",
    '<a href="x y">',
    "![Fig 1](./p_19_1.png)",
    "[the docs](https://a.b/c_(d))",
    '{"id": 7, "tags": ["a b", "c"]}',
    "+49 30 1234567",
    "(415) 555-0132",
    "020 7946 0958",
    "between 10 and 20 percent",
    "1,000 and 2,000 units",
    "2 to 4 pm",
    "9 am to 5 pm",
    "$3.50–$4.00",
    "€5 to €7",
    "-40 to +85 °C",
    "+/- 5 %",
    "±0.5 mm",
    "3 of 5",
    "10-20 %",
    "10–20 kg",
    "5 to 10 days",
    "00:00:01,000 --> 00:00:04,200",
    "$n > 100$",
    "$x$",
    "\\emph{not}",
    "\\section{Results}",
    "\\alpha",
]


@pytest.mark.parametrize(
    "whole",
    ["3.2 bar", "3.1 mmol/L", "1,450 rpm", "3 марта 2022", "Ms Tran", "M. Lefèvre", "day 17"],
)
def test_units_months_titles_and_numbered_things_are_one(whole: str) -> None:
    units = split(f"They saw {whole} there.")
    assert whole in [units.content(i) for i in units.words]


@pytest.mark.parametrize("whole", WHOLE)
def test_what_means_one_thing_is_one_unit(whole: str) -> None:
    text = f"Then look at {whole} and go on."
    units = split(text)
    start = text.index(whole)
    assert (start, start + len(whole)) in [(u.body, u.end) for u in units.units]


@pytest.mark.parametrize(
    "whole",
    [
        "15.6.2",
        "3.5kg",
        "https://a.b/c",
        "x@y.org",
        "2023年3月22日",
        "下午3点",
        "2016 年 4 月",
        "2024年3月5日",
        "上午10时30分",
        "3 点半",
        "3 分之一",
    ],
)
def test_chinese_around_it_does_not_cut_it(whole: str) -> None:
    text = f"请参阅{whole}，然后继续"
    start = text.index(whole)
    cuts = {u.body for u in split(text).units} | {u.end for u in split(text).units}
    assert not any(start < cut < start + len(whole) for cut in cuts)


def test_a_fence_is_one_unit() -> None:
    fence = "```python\nx = 1\n\nprint(x)\n```"
    units = split(f"Run this:\n\n{fence}\n\nThen stop.")
    assert [units.content(i) for i, u in enumerate(units.units) if u.kind == "fence"] == [fence]


def test_an_open_fence_runs_to_the_end() -> None:
    units = split("See\n\n```\na b\nc d\n")
    assert units.content(len(units.units) - 1) == "```\na b\nc d"


def test_table_rows_are_units_and_the_head_hangs_on_them() -> None:
    units = split("| a | b |\n|---|---|\n| 1 | 2.50 |\n| 3 | 4 |\n")
    assert [(units.content(i), u.role) for i, u in enumerate(units.units)] == [
        ("| a | b |\n|---|---|", "mark"),
        ("| 1 | 2.50 |", "word"),
        ("| 3 | 4 |", "word"),
    ]


@given(st.text())
def test_units_tile_the_text(text: str) -> None:
    units = split(text)
    at = 0
    for unit in units.units:
        assert unit.start == at
        assert unit.start <= unit.body < unit.end
        at = unit.end
    assert at == units.tail
    assert not text[at:].strip()


ODD = st.text(
    st.sampled_from(
        "ab1 ,.\n\u200d\ufe0f\u0301\u0e01\u0e33\u0e40\u0e34\u0915\u094d\u093f가각\u1100\u1161\u11a8"
        "👩👧🏽🇩🇪🇫東の。é\r"
    ),
    max_size=30,
)


@given(ODD)
def test_no_unit_ends_inside_a_grapheme(text: str) -> None:
    regex = pytest.importorskip("regex")
    borders = {0} | {match.end() for match in regex.finditer(r"\X", text)}
    for unit in split(text).units:
        assert unit.body in borders
        assert unit.end in borders


@given(st.text(st.sampled_from("0123456789.,:-/+$%€ abkg年は、\n"), max_size=40))
def test_digits_are_never_cut(text: str) -> None:
    cuts = {u.body for u in split(text).units} | {u.end for u in split(text).units}
    for number in re.finditer(r"\d+(?:[.,:]\d+)*", text):
        assert not any(number.start() < cut < number.end() for cut in cuts)
