"""What a negation or a condition governs does not stay without it, nor it without that."""

from __future__ import annotations

import re

import pytest

from headrace.compressors import Budget, Compressor, make_counter, make_scorer, split

RATES = [x / 20 for x in range(3, 20)]
DATE = "vor dem 15. April 2024"
MAINTENANCE = (
    "Die Wartung darf keinesfalls vor dem 15. April 2024 beginnen, es sei denn, der Betreiber hat"
    " kein Notstromaggregat, was allerdings eher selten vorkommt."
)
LEASE = (
    "Договор действует до 31 декабря 2024 года, если только арендатор не расторгнет его раньше"
    " этого срока."
)


@pytest.mark.parametrize(
    ("text", "words", "holder"),
    [
        (
            "Do not, whatever happens, and no matter who asks you for it over the telephone, give"
            " away the password.",
            "give|away|password|asks|telephone",
            "Do not",
        ),
        (
            "We cannot rule out that version 2.3.1-rc1 contains the defect CVE-2024-31337, which"
            " 2.3.0 does not have.",
            "2.3.0|does|which",
            "does not have",
        ),
        (
            "I do not, to be perfectly honest with you all, think that the bridge is safe.",
            "think|bridge|safe",
            "do not",
        ),
        ("I do not, to be perfectly honest with you all, think that it is safe.", "not", "think"),
        ("She can't – not even on Sundays – open the door to the hall.", "open|door", "can't"),
        ("This does not mean that the door has to be locked.", "does|door", "does not mean"),
        ("Version 2 supports streaming, which version 1 does not have.", "version 1", "not have"),
        (MAINTENANCE, "Wartung|Betreiber|Notstromaggregat", "es sei denn"),
        (MAINTENANCE, "es sei denn", "kein Notstromaggregat"),
        (MAINTENANCE, "15. April 2024", DATE),
        (LEASE, "31 декабря", "до 31 декабря 2024 года"),
        (LEASE, "Договор|действует|арендатор|расторгнет", "если только"),
        ("Le bail reste valable, à moins qu'il n'ait pas payé.", "bail|payé", "à moins qu'il"),
        ("El contrato sigue vigente a menos que lo anule.", "contrato|vigente", "a menos que"),
        ("Il contratto resta valido a meno che lo annulli.", "contratto|valido", "a meno che"),
        ("You may use the hall provided that you clean it.", "use|hall|clean", "provided that"),
        ("The result of the test was far from satisfactory.", "satisfactory", "far from"),
        ("The drug failed to show any benefit in the trial.", "show|benefit|trial", "failed to"),
        ("The patient denies any chest pain today.", "chest|pain", "denies"),
        ("The patient lacks any allergies to drugs.", "allergies|drugs", "lacks"),
        ("They refused to sign the contract of the town.", "sign|contract", "refused to"),
        ("The valve no longer closes in the cold.", "closes|cold", "no longer"),
        (
            "Write to Anna <anna.weber@example.com> at once.",
            "<|>|anna.weber",
            "<anna.weber@example.com>",
        ),
        (
            "See <https://example.com/a?b=1> for the rest of it.",
            "<|>|https",
            "<https://example.com/a?b=1>",
        ),
    ],
)
@pytest.mark.parametrize("scorer", ["lexical", pytest.param("mini", marks=pytest.mark.model)])
def test_it_stays_with_its_holder_only(scorer: str, text: str, words: str, holder: str) -> None:
    engine = Compressor(make_scorer(scorer), make_counter())
    outs = [engine.compress([text], Budget(rate=rate))[0].text for rate in RATES]
    assert any(holder in out for out in outs)
    for out in outs:
        found = [w for w in words.split("|") if re.search(rf"(?<!\w){re.escape(w)}(?!\w)", out)]
        assert not found or holder in out


def test_many_negations_in_one_sentence_take_linear_room() -> None:
    text = (
        "It is so, which a b does not have c unless d does not have e " + "unless f is not g " * 900
    )
    units = split(text).units
    assert sum(len(unit.needs) for unit in units) < 6 * len(units)
