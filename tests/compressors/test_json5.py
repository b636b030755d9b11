"""JSON5 and JSON with comments: no key, number or short text is lost, alone or among words."""

from __future__ import annotations

import pytest

from headrace.compressors import Budget, Compressor, make_counter, make_scorer

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
SETTINGS = """\
{
  // how fast the wheel may turn, when it's nobody's turn to look after it
  maxSpeed: 12.5,
  'name': 'overshot',
  /* the stones * each with its weight ** in kilograms */
  stones: [
    // the old one
    {id: 1, weight: 850, used: true},
    {id: 2, weight: +910, used: false,},
  ],
  hex: 0xFF, // a number
  least: .5, most: -Infinity,
  lines: "one \\
two",
}"""
CONFIG = """\
{
  "compilerOptions": {
    /* Visit https://example.org/config to read more about this file, it's all there */
    "target": "es2016", /* Set the version of the language for what is written. */
    // "lib": [],  /* Files that say what the target knows of. */
    "module": "commonjs",
    "strict": true,
  }
}"""
LIST = "[\n  // one\n  {id: 1, n: 5},\n  /* two */\n  {id: 2, n: 6},\n]"
WORDS = (
    "Here is what we use on all of the machines in the hall, so please look at it, and say what "
    "you would have us change before the others come on Monday."
)


@pytest.mark.parametrize("rate", [0.2, 0.4, 0.6, 0.8])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("text", [SETTINGS, CONFIG, LIST], ids=["settings", "config", "list"])
def test_json_with_comments_loses_no_key_and_no_number(text: str, ends: str, rate: float) -> None:
    text = text.replace("\n", ends)
    [result] = COMPRESSOR.compress([text], Budget(rate=rate))
    assert result.text == text
    assert result.reason


@pytest.mark.parametrize("rate", [0.2, 0.4, 0.6, 0.8])
@pytest.mark.parametrize("text", [SETTINGS, CONFIG, LIST], ids=["settings", "config", "list"])
def test_json_with_comments_among_words_stays_whole_and_the_words_go(
    text: str, rate: float
) -> None:
    [result] = COMPRESSOR.compress([f"{WORDS}\n\n{text}\n\n{WORDS}\n"], Budget(rate=rate))
    assert text in result.text
    assert result.tokens_out < result.tokens_in
    assert result.reason or result.tokens_out <= rate * result.tokens_in
