from __future__ import annotations

import re

import pytest

from headrace.compressors import Budget, Compressor, make_counter, make_scorer, split

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
RATES = [x / 20 for x in range(4, 20)]


def squeeze(text: str, rate: float, question: str | None = None) -> str:
    return COMPRESSOR.compress([text], Budget(rate=rate), question=question)[0].text


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("Please do not ever send the report.", "do not ever send"),
        ("I would have paid.", "would have paid"),
        ("I paid if they had asked.", "if they had asked"),
        ("Stop the pump before opening the valve.", "before opening"),
        ("C is less than B today.", "less than B"),
        ("Only admins can delete users.", "Only admins"),
        ("Ben doesn’t send the contract.", "doesn’t send"),
        ("Wait until he hears from Carla.", "until he hears"),
        ("She was hardly ever late.", "was hardly ever late"),
        ("Few people came.", "Few people"),
        ("Take no more than 4 tablets a day.", "no more than 4 tablets a day"),
        ("It takes at least 5 workers.", "at least 5 workers"),
        ("Use up to 20 percent of it.", "up to 20 percent"),
        ("Workers must not under any circumstances open it.", "must not under any circumstances"),
        ("The sum is not.", "sum is not"),
        ("Er zahlt nicht.", "zahlt nicht"),
        ("Das Ventil nicht öffnen!", "nicht öffnen"),
        ("Sie kommt, wenn der Druck steigt.", "wenn der Druck"),
        ("Il ne paie pas la facture.", "ne paie pas"),
        ("Elle n'est pas venue.", "n'est pas venue"),
        ("No pague la factura antes.", "No pague"),
        ("Он не платит сегодня.", "не платит"),
        ("Договор не будет продлён в марте.", "не будет продлён"),
        ("Он не может быть продлён.", "не может быть продлён"),
        ("Der Vertrag wird nicht verlängert.", "nicht verlängert"),
        ("Der Vertrag kann nicht mehr verlängert werden.", "nicht mehr verlängert"),
        ("Le contrat ne sera pas prolongé.", "ne sera pas prolongé"),
        ("Le bail ne peut plus être prolongé.", "ne peut plus être prolongé"),
        ("El contrato no será prorrogado.", "no será prorrogado"),
        ("Il contratto non sarà prorogato.", "non sarà prorogato"),
        ("O contrato não será prorrogado.", "não será prorrogado"),
        ("Het contract wordt niet verlengd.", "niet verlengd"),
        ("Umowa nie zostanie przedłużona.", "nie zostanie przedłużona"),
        ("Avtalet ska inte förlängas.", "inte förlängas"),
    ],
)
def test_a_small_word_that_turns_a_statement_is_one_with_what_it_governs(
    text: str, unit: str
) -> None:
    units = split(text)
    assert unit in [units.content(i) for i in units.words]


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(
    ("text", "words", "holder"),
    [
        ("I don't want to fly before 11 AM EST on Monday.", "fly Monday", "don't want"),
        ("He has never lived in Lisbon or near the sea.", "Lisbon sea", "never lived"),
        ("The customer doesn't want a refund for the lamp.", "refund lamp", "doesn't want"),
        ("She asked for a repeat at 18:00 unless the drip stopped.", "repeat 18:00", "unless"),
        ("Never refund tickets unless the airline cancelled.", "refund cancelled", "unless"),
        ("You may enter the lab only if you wear goggles.", "enter lab goggles", "only if"),
    ],
)
@pytest.mark.parametrize("scorer", ["lexical", pytest.param("mini", marks=pytest.mark.model)])
def test_what_a_negation_or_an_exception_reaches_stays_with_it_only(
    scorer: str, text: str, words: str, holder: str, rate: float
) -> None:
    engine = Compressor(make_scorer(scorer), make_counter())
    short = engine.compress([text], Budget(rate=rate))[0].text
    if any(word in short for word in words.split()):
        assert holder in short


def test_a_negation_ends_with_its_clause() -> None:
    units = split("He did not pay the bill, and he left for Rome; the rest is open but cheap.")
    reached = {
        units.content(i)
        for i in units.words
        if any("not pay" in units.content(a) for a, _ in units.units[i].needs)
    }
    assert "bill" in reached
    assert not {"left", "Rome", "rest", "open", "cheap"} & reached


def test_a_line_of_a_list_is_not_bound_to_the_next() -> None:
    units = split("- not\n- Rome\n\nPay unless\n\nThe end is near.")
    assert not any("\n" in units.content(i) for i in units.words)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(
    ("text", "word", "binder"),
    [
        ("I would have paid if they had asked.", "paid", "would have"),
        ("I would have paid if they had asked.", "asked", "if they had"),
        ("Stop the pump before opening the valve.", "opening", "before"),
        ("Only admins can delete users.", "delete", "Only admins"),
        ("Only admins can delete users.", "users", "Only admins"),
        ("The refund was refused rather than granted.", "granted", "rather than"),
        ("Mix A and B unless the label says so.", "label", "unless the"),
        ("A is less than B but more than C.", "than B", "less"),
        ("A is less than B but more than C.", "C", "more than"),
        ("Please do not pay it before we have talked.", "pay", "not"),
        ("Deny it if the customer is not in this list.", "if the customer", "not in this list"),
        ("Deny it if the customer is not in this list.", "list", "if the customer"),
        ("Wir zahlen, wenn der Kunde nicht kündigt.", "wenn der Kunde", "nicht kündigt"),
        ("Please do not pay it before we have talked.", "talked", "before we have"),
        ("Ben doesn't send the contract until he hears from Carla.", "send", "doesn't"),
        ("Ben doesn't send the contract until he hears from Carla.", "hears", "until he"),
    ],
)
def test_no_output_asserts_the_opposite(text: str, word: str, binder: str, rate: float) -> None:
    out = squeeze(text, rate)
    assert word not in out or binder in out


@pytest.mark.parametrize("rate", RATES)
def test_no_negation_is_left_dangling(rate: float) -> None:
    out = squeeze("We added all of it. The sum is not. It should not be so, they said.", rate)
    assert not re.search(r"(?:^|[.!?] )not\b", out)


def test_what_the_question_names_stays() -> None:
    text = "Ann bought the red car on 3 March."
    out = squeeze(text, 0.5, "Who bought the car?")
    assert "car" in out
    assert "Ann" in out
    assert "3 March" in squeeze(text, 0.6, "When was the car bought?")


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(
    "text",
    [
        "Sum is the result. it is not. so they went.",
        "She moved to the U.S. government office. Then she left it again, at last.",
        "Really? yes. and what! then. of course it was.",
        "Look at A, B, C etc. and others. now stop.",
    ],
)
def test_no_end_mark_is_doubled_by_deletion(text: str, rate: float) -> None:
    assert not re.search(r"[.!?,][.!?,]", squeeze(text, rate))


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(
    "text", ["Of these she took 4. Call a doctor at once, please.", "It is 12. Go.\nSay B. Then C."]
)
def test_a_number_does_not_become_a_list_marker(text: str, rate: float) -> None:
    assert not re.search(r"^(?:\d+|[A-Z])\. ", squeeze(text, rate), re.MULTILINE)


@pytest.mark.parametrize("rate", RATES)
def test_a_nested_item_never_hangs_under_a_wrong_parent(rate: float) -> None:
    text = (
        "- Fruit of the season\n  - Apples cost 3 EUR\n  - Pears cost 4 EUR\n"
        "- of it\n  - Trains to KA-01-HH-1234\n    - at 10:30 from platform 7\n- Nothing else\n"
    )
    lines = squeeze(text, rate).split("\n")
    for i, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        above = [len(x) - len(x.lstrip()) for x in lines[:i]]
        assert depth == 0 or depth - 2 in above
        if any(word in line for word in ("Trains", "KA-01")):
            assert [x for x in lines[:i] if x.startswith("- ")][-1].startswith("- of")


HTML = (
    "These are the prices in the shop of the town, as far as we know them today.\n\n"
    "<table>\n<thead>\n<tr><th>Name</th><th>Price</th></tr>\n</thead>\n<tbody>\n"
    "<tr><td>Apple</td><td>3 EUR</td></tr>\n<tr><td>Pear</td><td>4 EUR</td></tr>\n"
    "</tbody>\n</table>\n\nThat is all there is to say about it, and it is not much."
)


@pytest.mark.parametrize("rate", RATES)
def test_rows_of_html_tables_are_whole_and_their_heading_hangs_on_them(rate: float) -> None:
    out = squeeze(HTML, rate)
    for tag in ("table", "thead", "tbody", "tr", "th", "td"):
        assert out.count(f"<{tag}>") == out.count(f"</{tag}>")
    assert ("<th>Name</th><th>Price</th>" in out) == ("<td>" in out)
    assert out.count("<td>") == 2 * (out.count("<tr>") - 1) or "<td>" not in out


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize(
    "text",
    [
        "我们**非常重视**这个问题，因为**它**很重要。**注意：**请阅读**本文**。",
        "これは**「重要」**です。**`code`**を使う。**[link](a)**も。React は**とても便利**です。",
        "**Note:** do it. **A** b. It is **very, very** old.\n- **Other key** — the rest",
    ],
)
def test_emphasis_stays_or_goes_in_pairs(text: str, rate: float) -> None:
    out = squeeze(text, rate)
    assert out.count("**") % 2 == 0
    assert "****" not in out


@pytest.mark.parametrize(
    "text",
    [
        "The door is not\nopen to the public on any of these days.",
        "The door is *not* open and the hall must be cleaned.",
        "The door is **not** open and the hall must be cleaned.",
    ],
)
def test_neither_a_line_break_nor_emphasis_parts_a_negation_from_its_word(text: str) -> None:
    for percent in range(5, 100, 3):
        [result] = COMPRESSOR.compress([text], Budget(rate=percent / 100))
        assert "open" not in result.text or "not" in result.text
