"""Code, queries and settings in JSON strings: not a sign less, whatever the rate."""

from __future__ import annotations

import json

import pytest

from headrace.compressors import Budget, Compressor, make_counter, make_scorer
from headrace.compressors.structured.scripts import is_script

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
SCRIPTS = {
    "function": "def f(x):\n    return x",
    "with a docstring": (
        'def mean(values):\n    """Return the mean of the values that are given, or zero when there'
        ' is none at all."""\n    if not values:\n        return 0\n    return sum(values)\n'
    ),
    "behind comments": (
        "# This function takes the list of all users and returns those that are active today\n"
        "# and have paid their bill.\ndef active(users):\n    # keep only those that are active\n"
        "    return [u for u in users if u.active]\n"
    ),
    "in braces": (
        "function add(a, b) {\n  // add the two numbers and give the sum back to the one who\n"
        "  // asked for it, and to nobody else\n  return a + b;\n}\n"
    ),
    "settings": (
        "title: The bridge over the river\ndescription: A long text about the bridge over the river"
        " and its costs for all who live there\nauthor: Ann Lee\n"
    ),
    "a list in settings": (
        "steps:\n  - build the image and push it\n  - run all the tests on the new machine in the"
        " cellar of the house\n  - deploy it to the cluster\n"
    ),
    "query": (
        "SELECT name, age, city FROM users JOIN orders ON users.id = orders.user WHERE age > 30 AND"
        " city = 'Rome' ORDER BY name LIMIT 10"
    ),
    "query in lower case": (
        "select u.name, u.age, u.city from users u left join orders o on o.id = u.id where age is"
        " not null and city is not null and name is not null order by name limit ten"
    ),
    "commands": (
        "cd /srv/app && git pull origin main && pip install all of the new requirements\n"
        "sudo systemctl restart app\ntail -f /var/log/app.log and wait for the line that says ready"
    ),
    "image": (
        "FROM python:3.11 AS base\nRUN pip install headrace and all that it needs to run here\n"
        "COPY . /app\nCMD python -m app with the options that are given here below\n"
    ),
    "trace": (
        'Traceback (most recent call last):\n  File "/app/main.py", line 3, in run\n'
        "    result = compute(the, values, of, the, table)\n"
        "ValueError: the values are not all numbers, please look at them again and try once more\n"
    ),
}
PROSE = {
    "talk": "Ann: Hello there, how are you?\nBob: Fine, thanks, let us begin.\nAnn: The costs.",
    "colons": "I have a question: what is it?\nthe answer: nothing at all, as ever.",
    "select": "Select one from the list, please, and go home.",
    "quoted": "> the words of another\n> and more of them\nthanks",
    "verbs": "make sure that you go home\ngo to the market now\ncat food is there",
    "heading": "# Heading\n\nSome words here and there.\n\n- a list item\n- another one",
    "with": "With kind regards from all of us (and the cat).",
}


@pytest.mark.parametrize("rate", [0.1, 0.4, 0.7])
@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_script_in_json_keeps_every_sign(script: str, rate: float) -> None:
    text = json.dumps([{"id": 1, "code": script}], indent=2)
    (result,) = COMPRESSOR.compress([text], Budget(rate=rate))
    assert json.loads(result.text) == [{"id": 1, "code": script}]
    (result,) = COMPRESSOR.compress([repr([{"id": 1, "code": script}])], Budget(rate=rate))
    assert result.text == repr([{"id": 1, "code": script}])


@pytest.mark.parametrize("text", PROSE.values(), ids=PROSE)
def test_prose_is_no_script(text: str) -> None:
    assert not is_script(text)


@pytest.mark.parametrize("rate", [0.2, 0.5, 0.8])
def test_a_short_function_among_words_is_whole_or_gone(rate: float) -> None:
    code = "def add(a, b):\n    return a + b"
    words = "This one adds two numbers and gives back the sum of them, as you asked us to do it."
    text = json.dumps({"id": 1, "answer": f"{words}\n\n{code}\n\n{words}"})
    (result,) = COMPRESSOR.compress([text], Budget(rate=rate))
    answer = json.loads(result.text)["answer"]
    assert code in answer or "add(" not in answer
