"""A number and what it counts are one unit: neither stays without the other."""

from __future__ import annotations

import pytest

from headrace.compressors import Budget, Compressor, make_counter, make_scorer, split

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
ONE = [
    ("A runner stone of 1.2 metres weighs about 1,200 kilograms.", "1.2 metres|1,200 kilograms"),
    (
        "The wheel of 4.2 metres turns 12 times a minute and delivers about 15 horsepower to it.",
        "4.2 metres|12 times a minute|15 horsepower",
    ),
    (
        "Our company had 1,204 employees, 37 offices and 5.2 million customers in the year 2023.",
        "1,204 employees|37 offices|5.2 million customers",
    ),
    (
        "The dose is 0.5 mg/kg every 6-8 h, unless the GFR is < 30 ml/min/1.73 m², then half.",
        "0.5 mg/kg|< 30 ml/min/1.73 m²",
    ),
    (
        "We saw 12 new patients and 3 active users, 80 calls per day.",
        "12 new patients|3 active users|80 calls per day",
    ),
    (
        "Die Firma hatte 1.204 Mitarbeiter und 37 neue Büros, die sie 3 Mal pro Jahr besucht.",
        "1.204 Mitarbeiter|37 neue Büros|3 Mal pro Jahr",
    ),
    (
        "La société avait 1 204 salariés et 37 nouveaux bureaux, visités 3 fois par an.",
        "1 204 salariés|37 nouveaux bureaux|3 fois par an",
    ),
    (
        "La empresa tenía 1.204 empleados y 37 oficinas, que visita 3 veces al año.",
        "1.204 empleados|37 oficinas|3 veces al año",
    ),
    (
        "La ditta aveva 1.204 dipendenti e 37 uffici, che visita 3 volte al mese.",
        "1.204 dipendenti|37 uffici|3 volte al mese",
    ),
    (
        "У компании было 1204 сотрудника и 37 новых офисов, их проверяют 3 раза в год.",
        "1204 сотрудника|37 новых офисов|3 раза в год",
    ),
]


@pytest.mark.parametrize(("text", "wholes"), ONE)
def test_neither_stays_without_the_other(text: str, wholes: str) -> None:
    for percent in range(5, 100, 5):
        [result] = COMPRESSOR.compress([text], Budget(rate=percent / 100))
        for whole in wholes.split("|"):
            parts = (whole.split()[0], whole.split()[-1])
            left = {word.strip(".,") for word in result.text.split()}
            assert whole in result.text or left.isdisjoint(parts)


@pytest.mark.parametrize(
    ("text", "parted"),
    [
        ("In 2021 revenue rose by a half.", "2021|revenue"),
        ("Im Jahr 2023 Siemens zu kaufen war teuer.", "2023|Siemens"),
        ("He found 5 in it and gave 12 to Ann.", "5|12|Ann"),
        ("Version 2.3.1 contains it.", "contains"),
    ],
)
def test_a_year_a_version_and_a_function_word_are_not_counted(text: str, parted: str) -> None:
    units = split(text)
    assert set(parted.split("|")) <= {units.content(i) for i in units.words}


@pytest.mark.parametrize("rate", [0.3, 0.5, 0.7])
def test_a_text_that_is_mostly_counts_still_becomes_shorter(rate: float) -> None:
    text = ". ".join(
        f"Hall {n} had {n * 7} visitors, {n * 3} guards and {n} doors" for n in range(30)
    )
    [result] = COMPRESSOR.compress([text], Budget(rate=rate))
    assert rate * 0.8 <= result.tokens_out / result.tokens_in <= rate
