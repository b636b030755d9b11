"""Logs: repeats are folded with a count, and what matters of the rest stays."""

from __future__ import annotations

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.compressors import Budget, Compressed, Compressor, make_counter, make_scorer, to_html
from headrace.compressors.detection import detect
from headrace.compressors.notes import Note, woven
from headrace.compressors.structured.lines import template
from headrace.compressors.structured.logs import folds, runs

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
STAMP = re.compile(r"2024-01-02 10:\d\d:\d\d,\d{3}")


def line(second: int, what: str, level: str = "INFO") -> str:
    return f"2024-01-02 10:{second // 60:02}:{second % 60:02},{second % 1000:03} {level} {what}\n"


POLLS = [line(i, f"Polled node-{i % 9} at 10.0.0.{i} in {i * 7 % 50} ms") for i in range(1, 200)]
LOG = "".join(
    [
        line(0, "Server starting on port 8080"),
        *POLLS[:100],
        line(101, "Cannot open /var/db/main.db: permission denied", "ERROR"),
        *POLLS[100:150],
        line(160, "Disk is nearly full: 97 %", "WARN"),
        *POLLS[150:],
        line(240, "Server stopped by the operator"),
    ]
)


def squeeze(text: str, rate: float, **options: object) -> Compressed:
    (result,) = COMPRESSOR.compress([text], Budget(rate=rate), **options)  # type: ignore[arg-type]
    assert result.text == woven(text, result.spans, result.notes)
    assert result.tokens_out == COMPRESSOR.counter.count(result.text)
    assert result.tokens_out <= (Budget(rate=rate).limit(result.tokens_in) or 0)
    return result


def test_repeats_become_the_first_the_last_and_a_count() -> None:
    text = "".join([line(0, "Start"), *POLLS[:57], line(60, "End")])
    result = squeeze(text, 0.2)
    assert [note.text for note in result.notes] == ["[55 more lines like this]"]
    lines = result.text.splitlines()
    place = lines.index("[55 more lines like this]")
    assert lines[place - 1].startswith("2024-01-02 10:00:01,001")
    assert lines[place + 1].startswith("2024-01-02 10:00:57,057")


@pytest.mark.parametrize("rate", [0.3, 0.2, 0.1, 0.05])
def test_errors_warnings_and_whole_time_stamps_survive(rate: float) -> None:
    result = squeeze(LOG, rate)
    assert "permission denied" in result.text
    assert "nearly full" in result.text
    kept = [one for one in result.text.splitlines() if not one.startswith("[")]
    assert all(STAMP.match(one) and one[23:].strip() for one in kept)
    assert all(one.split()[:2] in [old.split()[:2] for old in LOG.splitlines()] for one in kept)


def test_a_line_that_the_question_names_is_not_folded() -> None:
    asked = squeeze(LOG, 0.2, question="How long did the poll of 10.0.0.77 take?")
    assert "10.0.0.77" in asked.text
    assert "10.0.0.77" not in squeeze(LOG, 0.2).text


def test_what_must_stay_is_not_folded() -> None:
    assert POLLS[76].strip() in squeeze(LOG, 0.3, keep=[re.escape(POLLS[76].strip())]).text


def test_folding_can_be_left_out() -> None:
    assert not squeeze(LOG, 0.3, fold=False).notes
    assert squeeze(LOG, 0.3).notes


def test_no_more_is_folded_than_the_budget_asks_for() -> None:
    assert [note.text for note in squeeze(LOG, 0.8).notes] == ["[47 more lines like this]"]
    assert len(squeeze(LOG, 0.6).notes) == 1
    assert len(squeeze(LOG, 0.4).notes) == 2
    assert squeeze(LOG, 1).text == LOG


def test_blocks_of_several_lines_are_folded_too() -> None:
    block = "{0} Retry {1}\n  at Pool.get(Pool.java:{1})\n  at Main.run(Main.java:7)\n"
    text = "".join(block.format(f"2024-01-02 10:00:{i:02}", i) for i in range(20))
    assert [fold.note for fold in folds(text)] == ["[18 more times these 3]"]


def test_equal_lines_need_no_last_one() -> None:
    text = "a line that is always the very same\n" * 30
    (fold,) = folds(text)
    assert fold.note == "[29 more lines like this]"
    assert squeeze(text, 0.5, formats=["log"]).text.count("always") == 1


def test_a_few_short_repeats_are_not_worth_a_note() -> None:
    assert folds("a 1\nb 2\n" * 3 + "ok\nok\nok\n") == []


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("is_ended", [True, False])
def test_line_ends_stay_as_they_are(ending: str, is_ended: bool) -> None:
    text = "".join(POLLS[:40]).strip().replace("\n", ending) + ending * is_ended
    result = squeeze(text, 0.3)
    assert result.notes
    assert ending + result.notes[0].text + ending in result.text
    assert result.text.count("\n") == result.text.count(ending)


def test_a_note_goes_with_the_lines_that_it_counts() -> None:
    assert squeeze(LOG, 0).text == ""
    few = squeeze(LOG, 0.01)
    for note in few.notes:
        assert "Polled" in few.text.split(note.text)[0]


def test_the_page_shows_the_notes() -> None:
    result = squeeze(LOG, 0.2)
    page = to_html([result], title="log")
    body = re.search(r"<pre[^>]*>(.*)</pre>", page, re.DOTALL)
    assert body is not None
    kept = re.sub(r"<del>.*?</del>", "", body[1], flags=re.DOTALL)
    assert unescape(re.sub(r"<[^>]*>", "", kept)) == result.text
    assert page.count("<ins>") == len(result.notes) > 0


def test_two_lines_are_alike_but_for_numbers_addresses_ids_and_times() -> None:
    one = "10:00:01 req 8f14e45f-ceea-467f-a0e6-1b2c3d4e5f60 from 10.0.0.1 at 0xff: 12 ms"
    two = "11:30:59 req 00000000-aaaa-467f-a0e6-ffffffffffff from 10.2.30.4 at 0x12: 8 ms"
    assert template(one) == template(two)
    assert template("user ann logged in") != template("user bob logged in")


def test_runs_are_found() -> None:
    assert runs("xaaab") == [(1, 1, 3)]
    assert runs("xababab") == [(1, 2, 3)]
    assert runs("aab") == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("\n".join(f"Jan  {i} 10:00:0{i} host sshd[{i}]: Accepted" for i in range(1, 6)), "log"),
        ("\n".join(f"[{i}.123456] usb 1-{i}: new device" for i in range(1, 6)), "log"),
        ("\n".join(f'1.2.3.{i} - - [10/Oct/2000:13:55:36] "GET / 200"' for i in range(6)), "prose"),
        ("\n".join(f"level=info msg=start n={i}" for i in range(6)), "log"),
        ("\n".join(f"[INFO] Building module {i}" for i in range(6)), "log"),
        ("\n".join(f"2024-01-0{i} 10:00:00,{i},rye,{i}" for i in range(1, 7)), "csv"),
        ("\n".join(f"[00:0{i}:01] Ann: we said a thing or {i}." for i in range(6)), "prose"),
        ("On 2024-01-02 10:00:01 it began.\nERROR is a word.\nIt ended.\nWe left.", "prose"),
    ],
)
def test_a_log_is_known_by_its_lines(text: str, kind: str) -> None:
    assert detect(text) == kind


LINES = st.sampled_from([*POLLS[:4], "  at Main.run\n", "\n", "[12 more lines like this]\n", "x"])


@given(st.lists(LINES, max_size=60).map("".join), st.floats(0, 1))
def test_any_log_is_made_of_its_spans_and_notes(text: str, rate: float) -> None:
    result = squeeze(text, rate, formats=["log"])
    assert len(result.text) <= len(text)
    assert all(a < b for a, b in result.spans)
    for note in result.notes:
        assert not any(a < note.at < b for a, b in result.spans)


def test_notes_are_woven_in_at_their_places() -> None:
    assert woven("abcd", [(0, 1), (3, 4)], [Note(1, "[2]")]) == "a[2]d"
    assert woven("abcd", [(0, 4)], [Note(2, "[0]"), Note(4, "!")]) == "ab[0]cd!"
    assert woven("abcd", [], [Note(2, "[0]")]) == "[0]"
