from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.planners import Node
from headrace.planners.fences import closing_fence
from headrace.planners.join import Join, without_title


def joined(*texts: str, titles: tuple[str, ...] = ("Alpha", "Beta", "Gamma")) -> str:
    join = Join()
    for id, title in enumerate(titles[: len(texts)], 1):
        join.add(Node(id, title))
    for id, text in enumerate(texts, 1):
        join.feed(id, text)
        join.end(id)
    return join.text


@pytest.mark.parametrize(
    "lead",
    [
        "Heat pumps: ", "2. Heat pumps: ", "**Heat pumps**\n\n", "**2. Heat pumps:** ",
        "### Heat pumps\n", "Heat pumps\n", "heat pumps - ", "Point 2: Heat pumps.\n",
        '"Heat pumps" ',
        "**Heat pumps** ", "2) **Heat pumps**: ", "Heat  Pumps：", "",
    ],
)  # fmt: skip
def test_a_repeated_title_is_taken_away_once(lead: str) -> None:
    node = Node(2, "Heat pumps")
    assert without_title(f"{lead}They move heat.", node) == "They move heat."


@pytest.mark.parametrize(
    "text",
    [
        "**Heat pumps** are what moves heat.", '"Heat pumps" is a word.', "_Heat pumps_ move heat.",
        "Heat pumps move heat.", "Heat pumps' cost is low.", "Heat pumps, of course.",
        "2. First step\n3. Second", "Heat pumps. They move heat.", "Heat pumps_x", "A heat pump: x",
        "10:30 is early.", "http://x.org",
    ],
)  # fmt: skip
def test_a_sentence_that_begins_with_the_title_stays_whole(text: str) -> None:
    for title in ("Heat pumps", "10", "http"):
        assert without_title(text, Node(2, title)) == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("no code", ""), ("```\nx", "\n```"), ("```py\nx\n```", ""), ("~~~\nx", "\n~~~"),
        ("````\n```\nx\n```", "\n````"), ("```\nx\n```\n```\ny", "\n```"), ("a ``` b", ""),
    ],
)  # fmt: skip
def test_an_open_fence_is_closed(text: str, expected: str) -> None:
    assert closing_fence(text) == expected


def test_later_parts_wait_for_their_turn() -> None:
    join = Join()
    join.add(Node(1, "A"))
    join.add(Node(2, "B"))
    assert join.feed(2, "second " * 9) == ""
    assert join.end(2) == ""
    assert join.feed(1, "first " * 9).startswith("1. **A**: first first")
    assert join.end(1) == "\n\n2. **B**: " + ("second " * 9).rstrip()
    assert join.head == 3


def test_a_part_that_is_not_known_yet_holds_nothing_up() -> None:
    join = Join()
    join.add(Node(1, "A"))
    join.feed(1, "one")
    join.end(1)
    join.add(Node(2, "B"))
    assert join.feed(2, "two") + join.end(2) == "\n\n2. **B**: two"


def test_numbers_skip_parts_without_text() -> None:
    assert joined("one", " \n", "three") == "1. **Alpha**: one\n\n2. **Gamma**: three"


@pytest.mark.parametrize("text", ["- a\n- b", "```\nx\n```", "1. a\n2. b", "| a |\n|---|", "    x"])
def test_a_block_begins_on_its_own_line(text: str) -> None:
    assert joined(text) == f"1. **Alpha**:\n\n{text}"


def test_only_text_that_was_not_sent_can_be_taken_back() -> None:
    join = Join()
    join.add(Node(1, "A"))
    join.add(Node(2, "B"))
    join.feed(1, "word " * 20)
    join.feed(2, "word " * 20)
    assert not join.reset(1)
    assert join.reset(2)
    assert join.written(2) == ""


def test_a_part_that_only_repeats_the_plan_has_no_text() -> None:
    plan = "1. Alpha\n2. **Beta**\n3. Gamma\n"
    assert joined("one", plan, "- Beta\n- Gamma") == "1. **Alpha**: one"
    join = Join()
    for id, title in enumerate(("Alpha", "Beta", "Gamma"), 1):
        join.add(Node(id, title))
    assert join.feed(1, plan + "2. Be") == ""
    assert join.is_blank(1) is False
    rest = "2. **Beta**\n3. Gamma\n2. Beyond these, there is more."
    assert join.feed(1, "yond these, there is more.") == f"1. **Alpha**:\n\n{rest}"


TEXTS = st.lists(st.text(alphabet="ab:*\n` 1.", max_size=60), min_size=1, max_size=4)


@given(TEXTS, st.data())
def test_neither_order_nor_pieces_change_the_text(texts: list[str], data: st.DataObject) -> None:
    join = Join()
    left = dict(enumerate(texts, 1))
    for id in left:
        join.add(Node(id, "ab"))
    sent = ""
    while left:
        id = data.draw(st.sampled_from(sorted(left)))
        size = data.draw(st.integers(1, 20))
        if left[id]:
            sent += join.feed(id, left[id][:size])
            left[id] = left[id][size:]
        else:
            sent += join.end(id)
            del left[id]
    assert sent == join.text == joined(*texts, titles=("ab",) * 4)


@given(st.lists(st.from_regex(r"\A[b-z]{1,9}( [b-z]{1,9}){0,12}\Z"), min_size=1, max_size=4))
def test_no_word_is_lost(texts: list[str]) -> None:
    text = joined(*texts, titles=("A", "AA", "AAA", "AAAA"))
    assert all(part in text for part in texts)


def test_a_text_that_cannot_begin_with_its_title_is_passed_on_at_once() -> None:
    join = Join()
    join.add(Node(1, "Heart health"))
    assert join.feed(1, "It ") == "1. **Heart health**: It"
    join = Join()
    join.add(Node(1, "Heart health"))
    assert join.feed(1, "**1. He") == ""
    assert join.feed(1, "art health**: It") == ""
    said = " beats all day long, and so on."
    assert join.feed(1, said).endswith(f": It{said}")
    join = Join()
    join.add(Node(1, "Heart health"))
    assert [join.feed(1, piece) for piece in ("`", "``py", "\nx")] == ["", "", ""]  # a block


def test_a_torn_word_that_nobody_has_read_is_written_anew() -> None:
    join = Join()
    for id, title in enumerate(("Alpha", "Beta"), 1):
        join.add(Node(id, title))
    join.feed(1, "It moves quickly enough to be seen by everybody transf")
    join.feed(2, "It stays where it is and is seen by everybody transf")
    assert join.tear(1).endswith("by everybody transf")  # of the first part, which was sent
    assert join.tear(2).endswith("by everybody ")
    join.feed(2, "moves.")
    join.end(1)
    join.end(2)
    assert join.text.endswith("2. **Beta**: It stays where it is and is seen by everybody moves.")


@pytest.mark.parametrize(
    ("text", "fence"),
    [("```\nx", "\n```"), ("```x``` in a line", ""), ("~~~ a`b\nx", "\n~~~"), ("```\nx\n```", "")],
)
def test_only_a_fence_is_closed(text: str, fence: str) -> None:
    assert closing_fence(text) == fence
