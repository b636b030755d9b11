from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.planners import Mode, Node, PlanParser, parse_plan

MODES: tuple[Mode, ...] = ("skeleton", "graph")


def titles(text: str | bytes, mode: Mode = "skeleton", max_nodes: int = 40) -> list[str]:
    return [node.title for node in parse_plan(text, mode, max_nodes=max_nodes).nodes]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. Alpha\n2. Beta", ["Alpha", "Beta"]),
        ("1.\n2. Beta\n3. Gamma", ["Beta", "Gamma"]),  # an empty point swallowed the next
        ("1.\nAlpha\n2.\nBeta", ["Alpha", "Beta"]),
        ("1. Alpha\n   1. a\n   2. b\n2. Beta", ["Alpha", "Beta"]),  # real point 2 was lost
        ("1. Alpha\n1.1 a\n1.2 b\n2. Beta", ["Alpha", "Beta"]),
        ("1. Alpha\n- a\n- b\n2. Beta", ["Alpha", "Beta"]),
        ("1. Alpha\n  i. a\n  ii. b\n2. Beta", ["Alpha", "Beta"]),
        ("1. Alpha\na) a\nb) b\n2. Beta", ["Alpha", "Beta"]),
        ("1. A\n1. B\n1. C", ["A", "B", "C"]),  # all ones were one point
        ("1) Alpha\n2) Beta", ["Alpha", "Beta"]),
        ("(1) Alpha\n(2) Beta", ["Alpha", "Beta"]),
        ("1、甲\n2、乙", ["甲", "乙"]),
        ("一、甲\n二、乙\n十一、丙", ["甲", "乙", "丙"]),
        ("１．甲\n２．乙", ["甲", "乙"]),
        ("（1）甲\n（2）乙", ["甲", "乙"]),
        ("1: Alpha\n2: Beta", ["Alpha", "Beta"]),
        ("Point 1: Alpha\nPoint 2: Beta", ["Alpha", "Beta"]),
        ("- Alpha\n- Beta", ["Alpha", "Beta"]),
        ("* Alpha\n* Beta", ["Alpha", "Beta"]),
        ("• Alpha\n• Beta", ["Alpha", "Beta"]),
        ("i. Alpha\nii. Beta\niv. Gamma", ["Alpha", "Beta", "Gamma"]),
        ("I. Alpha\nII. Beta\nIX. Gamma", ["Alpha", "Beta", "Gamma"]),
        ("a) Alpha\nb) Beta", ["Alpha", "Beta"]),
        ("**1.** Alpha\n**2.** Beta", ["Alpha", "Beta"]),  # the title was "** Alpha"
        ("**1. Alpha**\n**2. Beta**", ["Alpha", "Beta"]),
        ("1. **Alpha**\n2. *Beta*:", ["Alpha", "Beta"]),
        ("### 1. Alpha\n### 2. Beta", ["Alpha", "Beta"]),
        ("> 1. Alpha\n> 2. Beta", ["Alpha", "Beta"]),
        ("Founded in 2023.\n1. A\n2. B", ["A", "B"]),  # point 2023 swallowed point 1
        ("2023. A bad year\n1. A\n2. B", ["A", "B"]),
        ("1. A\n2.5 times more\n2. B", ["A", "B"]),
        ("1. A\n9.81\n2. B", ["A", "B"]),
        ("1. A\n10:30 in the morning\n2. B", ["A", "B"]),
        ("1. A\n```\nx==2.0.1\n2. no\n```\n2. B", ["A", "B"]),  # point 2 was "0.1"
        ("```\n1. A\n2. B\n```", ["A", "B"]),
        ("```markdown\n1. A\n2. B\n```\n", ["A", "B"]),
        ("1. A. 2. B. 3. C", ["A.", "B.", "C"]),  # one line was one point
        ("1. Apples 2. Pears 3. Plums", ["Apples", "Pears", "Plums"]),
        ("1. Version 2. of it\n2. B", ["Version 2. of it", "B"]),
        ("<think>I need 3. points</think>\n1. A\n2. B", ["A", "B"]),
        ("<think>\n1. no\n[2] {no}\n@plan\n</think>\n1. A\n2. B", ["A", "B"]),
        ("1. no\n2. no\n</think>\n1. A\n2. B", ["A", "B"]),
        ("<think>1. no\n2. no", []),
        ("0. Intro\n1. A", ["Intro", "A"]),
        ("1. A\n3. B\n7. C", ["A", "B", "C"]),
        ("1. A\r\n2. B\r\n", ["A", "B"]),
        ("1. A\r2. B", ["A", "B"]),
        ("Sure! Here is it:\n\n1. A\n\n2. B\n\nHope it helps.", ["A", "B"]),
        ("1. Overview\n2. overview!\n3. B", ["Overview", "B"]),
        ("1. Alpha: what it says\n2. Beta", ["Alpha", "Beta"]),
        ("1.Alpha\n2.Beta", ["Alpha", "Beta"]),
        ("\ufeff1. Alpha\n2. Beta", ["Alpha", "Beta"]),
        ("Sure!", []),
        ("", []),
        ("\n\n", []),
        ("1.\n2.\n3.", []),
    ],
)
def test_a_skeleton_is_read_in_every_form(text: str, expected: list[str]) -> None:
    assert titles(text) == expected


def test_sub_points_say_what_belongs_into_a_point() -> None:
    alpha, beta = parse_plan("1. Alpha\n   - a\n   - b\n2. Beta: c").nodes
    assert (alpha.note, beta.note) == ("cover a; b", "cover c")


def test_thirty_points_are_all_read() -> None:
    assert len(titles("\n".join(f"{i}. Point {i}" for i in range(1, 31)))) == 30


def test_a_cut_plan_loses_its_torn_line_only() -> None:
    parser = PlanParser()
    parser.feed("1. Alpha\n2. Beta\n3. Gam")
    parser.finish(is_cut=True)
    assert [node.title for node in parser.plan.nodes] == ["Alpha", "Beta"]


def test_a_graph_is_read_with_all_its_fields() -> None:
    plan = parse_plan(
        "@plan lang=en style=plain\n1|What it does|~6\n2|Running cost|<1|~9|h2\n"
        "3|Noise|%2|~5|!the neighbours\n9|Which to choose|<2,3|~8\n@end\n10|no",
        "graph",
    )
    assert [(n.title, n.needs, n.agrees, n.length) for n in plan.nodes] == [
        ("What it does", (), (), 60),
        ("Running cost", (1,), (), 90),
        ("Noise", (), (2,), 50),
        ("Which to choose", (2, 3), (), 80),
    ]
    assert plan.nodes[2].note == "leave out the neighbours"
    assert [node.difficulty for node in plan.nodes] == [2, 2, 2, 2]
    assert plan.contract == "lang=en style=plain"


@pytest.mark.parametrize(
    ("field", "difficulty"),
    [("h1", 1), ("h3", 3), ("H2", 2), ("hard=3", 3), ("h4", 2), ("h", 2), ("heat", 2)],
)
def test_a_difficulty_is_read_and_anything_else_is_medium(field: str, difficulty: int) -> None:
    [one, two] = parse_plan(f"@plan\n1|Alpha|~6\n2|Beta|<1|~9|{field}\n@end", "graph").nodes
    assert (one.difficulty, two.difficulty) == (2, difficulty)


@pytest.mark.parametrize("line", ["@plan", "@plan ", "**@plan**", "`@plan`"])
def test_a_plan_without_a_contract_has_none(line: str) -> None:
    assert parse_plan(f"{line}\n1|Alpha\n2|Beta\n@end", "graph").contract == ""


def test_only_the_first_line_is_the_contract() -> None:
    plan = parse_plan("@plan a=b\n1|Alpha\n@plan c=d\n2|Beta\n@end", "graph")
    assert plan.contract == "a=b"
    assert len(plan.nodes) == 2


@pytest.mark.parametrize(
    "line",
    [
        "2|Compare|<1",
        "2 | Compare | < 1 |",
        "2|Compare|after=1",
        "2|Compare|deps: 1",
        "2. Compare | <1",
        "2. Compare (uses the result of step 1)",
        "2) Compare [depends on 1]",
        "**2|Compare|<1**",
    ],
)
def test_a_dependency_is_read_however_it_is_said(line: str) -> None:
    plan = parse_plan(f"@plan\n1|List them\n{line}\n@end", "graph")
    assert [(node.title, node.needs) for node in plan.nodes] == [
        ("List them", ()),
        ("Compare", (1,)),
    ]


def test_a_graph_node_comes_out_with_the_end_of_its_line() -> None:
    parser = PlanParser("graph")
    assert parser.feed("@plan\n1|Alp") == []
    assert [node.title for node in parser.feed("ha\n2|B")] == ["Alpha"]
    assert [node.title for node in parser.finish()] == ["B"]


def test_a_point_comes_out_with_the_beginning_of_the_next_line() -> None:
    parser = PlanParser()
    assert parser.feed("1. Alpha\n") == []
    assert parser.num_nodes == 1
    assert [node.title for node in parser.feed("2. Beta\n")] == ["Alpha"]


LINES = st.sampled_from(
    """1. Alpha;2) Beta;   - sub;1.;一、甲;```;<think>;</think>;@plan;@end;3|Gamma|<1,2|~9
    4|Delta|%3|<4,9|~x;5||<;i. x;a) y;**6. Eta**: z;７．七;1. A. 2. B. 3. C;2. Compare (uses 1)
    \r;🙂;2.0.1;ééé;> - 1. x;一二三、;十十、;((1))""".replace("\n", ";").split(";")
)
TEXTS = st.one_of(st.text(max_size=200), st.lists(LINES, max_size=14).map("\n".join))


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.sampled_from(MODES), st.integers(2, 12))
def test_no_text_breaks_the_parser(text: str, mode: Mode, max_nodes: int) -> None:
    plan = parse_plan(text, mode, max_nodes=max_nodes)
    assert [node.id for node in plan.nodes] == list(range(1, len(plan.nodes) + 1))
    assert len(plan.nodes) <= max_nodes
    for node in plan.nodes:
        assert node.title
        assert all(0 < other < node.id for other in (*node.needs, *node.agrees))


@settings(max_examples=400, deadline=None)
@given(TEXTS, st.sampled_from(MODES), st.lists(st.integers(1, 60), min_size=1, max_size=8))
def test_how_the_bytes_are_cut_does_not_matter(text: str, mode: Mode, sizes: list[int]) -> None:
    data = text.encode()
    parser = PlanParser(mode)
    came: list[Node] = []
    at = step = 0
    while at < len(data):
        size = sizes[step % len(sizes)]
        before = parser.num_restarts
        nodes = parser.feed(data[at : at + size])
        came = nodes if parser.num_restarts > before else [*came, *nodes]
        at, step = at + size, step + 1
    before = parser.num_restarts
    nodes = parser.finish()
    came = nodes if parser.num_restarts > before else [*came, *nodes]
    assert parser.plan == parse_plan(text, mode)
    assert tuple(came) == parser.plan.nodes


@given(st.binary(max_size=200), st.sampled_from(MODES))
def test_broken_utf8_is_read(data: bytes, mode: Mode) -> None:
    parse_plan(data, mode)


def test_a_line_says_how_hard_its_part_is() -> None:
    plan = parse_plan("@plan\n1|A|h1|~3\n2|B|~3|H3\n3|C|h9\n@end", "graph")
    assert [node.difficulty for node in plan.nodes] == [1, 3, 2]
