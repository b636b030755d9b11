"""A number is kept whole or goes whole: half of one is another number."""

from __future__ import annotations

import json
import re

import pytest

from headrace.compressors import Budget, Compressor, make_counter, make_scorer, split

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
NUMBERS = [
    "1 234,56",
    "10 000",
    "1 000 000",
    "12 to 345",
    "5 mg/kg",
    "−12 °C",
    "9.81 m/s²",
    "5 W/m²K",
    "1 1/2",
    "8 a.m.",
    "US$ 5",
    "3万5千円",
    "4111 1111 1111 1111",
    "020 7946 0958",
    "(555) 123-4567",
    "555 123 4567",
    "0151 23 45 67 89",
    "6.02 × 10^23",
    "12. Mai 2021",
    "12 de mayo de 2021",
    "1er janvier 2020",
    "≥ 3",
    "± 0.5",
    "~ 5",
    "< 0.05",
    "2 + 2 = 4",
    "10 – 20",
    "5 to 7",
    "1 in 5",
    "EUR 50",
    "180 °C/350",
    "1,234.56",
    "$3.50–$4.00",
    "10 and 20 percent",
]


@pytest.mark.parametrize("number", NUMBERS)
def test_a_number_is_one_unit(number: str) -> None:
    text = f"They found {number} there, they said, and went on with the other work of that day"
    contents = [text[u.body : u.end] for u in split(text).units]
    assert any(number in content for content in contents)


@pytest.mark.parametrize("end", [".", ",", ":", "; and so on.", "\n", ")."])
@pytest.mark.parametrize("number", ["1 234,56", "10 000", "1 000 000", "5 mg/kg", "12. Mai 2021"])
def test_a_number_stays_whole_at_every_rate(number: str, end: str) -> None:
    text = f"The whole of it was ({number}{end} The rest of the text has no digits in it at all."
    for percent in range(5, 100, 5):
        [result] = COMPRESSOR.compress([text], Budget(rate=percent / 100))
        assert number in result.text or not re.search(r"\d", result.text), result.text


@pytest.mark.parametrize(
    "text",
    [
        "[true, false, null, true]",
        '{"a":1} {"b":2}',
        '{"a": 1}\n[1, 2]\n3\n',
        '{"a": 1,}',
        '{"a": 1, // comment\n "b": 2}',
        '{"t": "a\tb  c"}',
        '"a log line\\nand another one with  spaces"',
        '{"a": 1}\n{"b": 2\n{"c": 3}\n',
    ],
)
@pytest.mark.parametrize("rate", [0.2, 0.5, 0.7])
def test_json_of_any_kind_loses_no_value(text: str, rate: float) -> None:
    [result] = COMPRESSOR.compress([text], Budget(rate=rate))
    assert "".join(result.text.split()) == "".join(text.split())
    try:
        value = json.loads(text)
    except ValueError:
        assert result.reason
    else:
        assert json.loads(result.text) == value
