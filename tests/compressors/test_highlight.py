from __future__ import annotations

import re
from html import unescape

from headrace.compressors import Budget, Compressor, make_counter, make_scorer, to_html

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
TEXT = (
    'The <b>bold</b> "plan" & the costs of 12 EUR <script>alert(1)</script> are fine.\n\nBye, all.'
)


def test_the_page_shows_the_original_and_what_was_cut() -> None:
    [result] = COMPRESSOR.compress([TEXT], Budget(rate=0.5))
    page = to_html([result], title="A <test>")
    body = re.search(r"<pre[^>]*>(.*)</pre>", page, re.DOTALL)
    assert body is not None
    assert unescape(re.sub(r"</?(?:span|del)[^>]*>", "", body[1])) == TEXT
    kept = re.sub(r"<del>.*?</del>", "", body[1], flags=re.DOTALL)
    assert unescape(re.sub(r"<[^>]*>", "", kept)) == result.text
    assert "<script" not in page
    assert "A &lt;test&gt;" in page
    assert "http" not in page
    assert f"{result.tokens_in:,}" in page


def test_odd_characters_make_a_valid_page() -> None:
    results = COMPRESSOR.compress(["a \ud800 \0 b \x1b[0m", ""], Budget(rate=0.9))
    to_html(results, title="x").encode()


def test_a_big_text_makes_no_bigger_page_than_needed() -> None:
    text = TEXT * 4000
    [result] = COMPRESSOR.compress([text], Budget(rate=0.5))
    assert len(to_html([result], title="big")) < 4 * len(text)


def test_the_reason_is_on_the_page() -> None:
    [result] = COMPRESSOR.compress(["a,b\n1,2\n3,4\n5,6\n7,8\n"], Budget(rate=0.5))
    assert "CSV is kept whole" in to_html([result], title="x")
