"""Numbers with what they count or name, in many scripts: one unit, all or absent at every rate."""

from __future__ import annotations

import pytest

from headrace.compressors import Budget, Compressor, make_counter, make_scorer, split

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
KINDS = {
    "rooms": "Room 4-B|Building 7A|Suite 300|Apt. 4B|Gate B12|Section 4.2.1|Zimmer 12a|B 42-7",
    "files": "2021/4711-B|case no. 12-345|No. 18-cv-01234|C-131/12|Az. 3 O 123/21|12 O 45/20|No. 5",
    "laws": "§ 823 BGB|§ 12 Abs. 3|Art. 5 Abs. 1 lit. a|ст. 5",
    "norms": "ISO 9001|ISO 8601-1:2019|DIN EN 60204-1|RFC 2119|CVE-2024-12345",
    "books": "ISBN 978-3-16-148410-0",
    "flights": "Flight LH 1234|LH 1234",
    "money": (
        "1 250 000,50 руб.|250 руб.|1 250 000,50 ₽|12 500 ₽|1 000 zł|500 Kč|1 200 грн|300 тыс. руб."
        "|$1.5 million|€ 3,50|1.250.000,50 EUR|5 млн|3 Mio. EUR"
    ),
    "places": "48.2082° N|16.3738° E|48°12′30″ N|48.2082° N, 16.3738° E",
    "sizes": "3/4|1 1/2|½ cup|5 × 10 cm|10 x 20 x 30 mm|1:50 000|6 ft 2 in|5 ft|10 oz",
    "ranges": "10-20 %|10–20%|5 to 10 percent|±0.5 mm|± 0.5 mm|120/80 mmHg",
    "dates": "2026-W49-2|2021-05-12T10:30:00Z|Q3 2024|FY 2023/24|5 ноября 2021 г.|12 janvier 2021",
    "times": "10:30 CET|10:30 UTC+2|14:00 Uhr|12 Uhr|18h30",
    "spans": "7 Tage|3 Monate|3 Std.|5 jours|10 años|20 лет|2 miles",
    "matter": "H2O|C6H12O6|Ca(OH)2|45 kg/m³|0.5 µg/l|6.02×10²³",
    "temperatures": "−5 °C|-5 °C|100 °F|300 K",
    "electricity": "5 Ω|10 kΩ|100 µF|3.5 GHz",
    "Cyrillic units": "5 кг|100 м|3 км/ч",
    "versions": "v1.2.3-rc.1+build|1.2.3-rc.1+build.5",
    "phones": "+43 1 58858-0|+1 (415) 555-0132|0151/23456789",
    "moves": "1. e4 e5|Nf3|O-O-O",
    "formulas": "p < 0.05|n = 12|≥ 18",
    "addresses": "192.168.0.1:8080|10.0.0.0/8|00:1A:2B:3C:4D:5E",
}
WHOLE = [whole for kind in KINDS.values() for whole in kind.split("|")]


@pytest.mark.parametrize("whole", WHOLE)
def test_no_unit_begins_or_ends_inside(whole: str) -> None:
    for text in (
        f"Then look at {whole} and go on.",
        f"Siehe {whole}, dann weiter.",
        f"So ({whole}) it is",
    ):
        start = text.index(whole)
        stop = start + len(whole.rstrip("."))
        cuts = {place for unit in split(text).units for place in (unit.body, unit.end)}
        assert not any(start < cut < stop for cut in cuts)


@pytest.mark.parametrize("whole", WHOLE[::4])
def test_it_is_whole_or_absent_at_every_rate(whole: str) -> None:
    text = f"All of them came to the place, and there was {whole} to be seen by those who looked."
    for percent in range(5, 100, 10):
        [result] = COMPRESSOR.compress([text], Budget(rate=percent / 100))
        parts = [part for part in whole.split() if any(map(str.isdigit, part))]
        assert whole.rstrip(".") in result.text or not any(part in result.text for part in parts)


@pytest.mark.parametrize(
    "text",
    ["In 2021 a man came.", "THE END. I 5 times went.", "He had 5 in the morning, 3 at noon."],
)
def test_a_number_takes_no_words_that_are_not_its_own(text: str) -> None:
    units = split(text)
    contents = [units.content(i) for i in units.words]
    assert {"man", "went", "morning"} & set(contents)
    assert not any("in the" in content or "a man" in content for content in contents)
