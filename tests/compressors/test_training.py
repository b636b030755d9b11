from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headrace.compressors import split
from headrace.compressors.mini import Mini, tensorfile
from headrace.compressors.mini.weights import DATA
from headrace.compressors.training.labels import answer_marks, blind_marks, deletion_marks
from headrace.compressors.training.lingua import align, distill, filtered, records
from headrace.compressors.training.pairs import pairs
from headrace.compressors.training.sources import squad
from headrace.middleware.errors import InvalidRequest

model = pytest.mark.model

TEXT = "It rained in York. The old mill was sold to Ann Lee in 1892, and the mill burnt down."


def marked(text: str, marks: Any) -> dict[str, float]:
    best: dict[str, float] = {}
    for start, end, value in marks:
        best[text[start:end]] = max(value, best.get(text[start:end], 0.0))
    return best


def write(path: Path, *records: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")
    return path


def test_the_answer_is_worth_one_and_its_sentence_less() -> None:
    found = marked(TEXT, answer_marks("Who bought the old mill?", TEXT, ["Ann Lee"]))
    assert found["Ann Lee"] == 1.0
    assert found["mill"] == found["old"] == 0.9
    assert (found["1892"], found["burnt"]) == (0.5, 0.25)
    assert not {"York", "rained", "the", "was"} & set(found)


def test_the_answer_counts_in_the_sentence_the_question_is_about() -> None:
    text = "In 1892 it rained. The mill was sold in 1892. In 1892 a king died."
    [where] = [m for m in answer_marks("When was the mill sold?", text, ["1892"]) if m[2] == 1.0]
    assert text[: where[0]].endswith("sold in ")


def test_an_answer_that_is_not_there_gives_no_labels() -> None:
    assert answer_marks("Who?", TEXT, ["Bob", " "]) == ()


def test_without_a_question_every_question_counts_and_answers_most() -> None:
    found = marked(TEXT, blind_marks(TEXT, [("Who bought it?", ["Ann Lee"]), ("Where?", ["York"])]))
    assert found["Ann Lee"] == found["York"] == 1.0
    assert max(v for word, v in found.items() if word not in ("Ann Lee", "York")) <= 0.45


def test_human_deletions_keep_function_words_less() -> None:
    text = "The mill, old as it was, burnt."
    found = marked(text, deletion_marks(text, ["The", "mill", "old", "burnt"], [1, 1, 0, 1]))
    assert found["mill"] == found["burnt"] > found["The"] > 0
    assert "old" not in found


def test_articles_are_held_out_whole(tmp_path: Path) -> None:
    import gzip

    def article(title: str) -> dict[str, Any]:
        answers = [{"text": "rain", "answer_start": 0}]
        qas = [{"question": f"What in {title}?", "answers": answers}]
        return {"title": title, "paragraphs": [{"context": f"rain in {title}", "qas": qas}]}

    (tmp_path / "squad").mkdir()
    data = {"data": [article("Normans"), article("Teacher"), article("Kenya")]}
    for version in ("v1", "v2"):
        with gzip.open(tmp_path / "squad" / f"squad_{version}.json.gz", "wt") as file:
            json.dump(data, file)
    assert [a.title for a in squad(tmp_path)] == ["Teacher"]
    assert [a.title for a in squad(tmp_path, "test")] == ["Normans"]


def test_a_missing_data_set_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="squad_v2"):
        squad(tmp_path)


def test_deleted_words_are_aligned_in_order_even_when_their_endings_change() -> None:
    text = "The mill was sold. The mill was burning in 1892."
    found = align(text, "mill sold mill burn 1892")
    assert [text[a:b] for a, b in found.keep] == ["mill", "sold", "mill", "1892"]
    assert found.variation == pytest.approx(0.2)
    assert align(text, "mill sold burnings").variation == pytest.approx(0.0)


def test_what_the_teacher_invents_or_leaves_alone_is_not_learnt() -> None:
    good = align(TEXT, "York mill sold Ann Lee 1892")
    invented = align(TEXT, "A lovely summer in Paris")
    everything = align(TEXT, TEXT)
    nothing = align(TEXT, "")
    assert filtered([good, invented, everything, nothing]) == [good]


def test_any_function_is_a_teacher_and_its_labels_can_be_trained_on(tmp_path: Path) -> None:
    prompts: list[str] = []

    def teacher(prompt: str) -> str:
        prompts.append(prompt)
        return "mill sold Ann Lee 1892"

    found = filtered(distill([TEXT], teacher))
    [group] = pairs(write(tmp_path / "labels.jsonl", *records(found)))
    assert TEXT in prompts[0]
    [example] = group.examples
    assert [TEXT[a:b] for a, b, _ in example.marks] == ["mill", "sold", "Ann", "Lee", "1892"]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"question": "Who?"}, "needs a passage"),
        ({"question": "Who?", "passage": TEXT}, 'needs "answers"'),
        ({"question": "Who?", "passage": TEXT, "answers": ["Bob"]}, "no answer is in the passage"),
        ({"question": "Who?", "passage": TEXT, "keep": [[0, 999]]}, "not within the passage"),
        ({"passage": TEXT, "relevant": False}, "irrelevant to a question"),
    ],
)
def test_a_pair_that_teaches_nothing_is_refused(
    tmp_path: Path, record: dict[str, Any], message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        list(pairs(write(tmp_path / "p.jsonl", record)))


def test_passages_of_one_question_are_ranked_together(tmp_path: Path) -> None:
    path = write(
        tmp_path / "p.jsonl",
        {"question": "Who?", "passage": TEXT, "answers": ["Ann Lee"]},
        {"question": "Who?", "passage": "It rained.", "relevant": False},
    )
    [group] = pairs(path)
    assert [example.relevance for example in group.examples] == [1.0, 0.0]


@model
@pytest.mark.slow
def test_fine_tuning_learns_resumes_and_writes_a_model(tmp_path: Path) -> None:
    import torch

    from headrace.compressors.training.__main__ import main

    path = write(
        tmp_path / "p.jsonl",
        *({"passage": f"Item {n}: colour teal, size {n}.", "keep": [[0, 4]]} for n in range(64)),
    )
    arguments = ["--pairs", str(path), "--steps", "20", "--seed", "1"]
    main([*arguments, "--out", str(tmp_path / "whole")])
    model_folder = tmp_path / "whole" / "model"
    losses = [
        json.loads(line)["tokens"]
        for line in (tmp_path / "whole" / "log.jsonl").read_text().splitlines()
    ]
    assert len(losses) == 1
    main([*arguments, "--out", str(tmp_path / "whole")])  # done already: nothing changes
    again = tmp_path / "again"
    main([*arguments, "--out", str(again)])
    one, two = (
        tensorfile.load(f / "model.safetensors")[0] for f in (model_folder, again / "model")
    )
    assert all(torch.equal(one[name], two[name]) for name in one)
    units = split("Item 7: colour teal, size 7.")
    [before], [after] = Mini(DATA).score([units]), Mini(model_folder).score([units])
    assert after[0] - after[-2] > before[0] - before[-2]
