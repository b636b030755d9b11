"""Numbers of several words and formulas, as regular expressions; linear, as those in patterns."""

from __future__ import annotations

import re

_AMOUNT = r"(?:\+/-\s?|±\s?|[+\u2212-])?[€$£¥₹]?\d{1,15}(?:[.,:'’]\d{1,9}){0,5}"
_WORDS = r"(?:to|and|or|through|bis|und|oder|à|et|ou|a|y|o|e|until)"
_DAY = r"(?:上午|下午|晚上|早上|凌晨|中午|傍晚|午前|午後|오전|오후)"
_CLOCK = r"[年月日号號时時点點分秒]"
_CLOCK_TIME = r"\d{1,3}:\d{2}(?::\d{2})?[.,]\d{1,3}"


def quantities(unit: str) -> tuple[tuple[str, re.Pattern[str]], ...]:
    """Return kinds and patterns of phone numbers, ranges, times and TeX.

    ``unit`` is the pattern of a unit of measurement.
    """
    measured = rf"{_AMOUNT}(?:[ \u00a0\u202f]?{unit}(?![\w]))?"
    between = r"(?:between|from|zwischen|von|entre|de)"
    return (
        ("number", re.compile(rf"{_CLOCK_TIME}[ ]-->[ ]{_CLOCK_TIME}")),
        (
            "number",
            re.compile(
                r"(?<![\w.(])(?:\(\d{2,5}\)[ ]?\d{2,5}(?:[ -]\d{2,5}){0,3}"
                r"|0\d{1,4}(?:[ -]\d{3,4}){2,3}|\d{3}[ -]\d{3}[ -]\d{4})(?![\w.,:/-]?\d)"
            ),
        ),
        (
            "number",
            re.compile(
                rf"(?<![\w.,:/+-])(?:{between}[ ])?{measured}"
                rf"(?:[ ]{_WORDS}[ ]|[ ]?[–—~][ ]?|-(?=[€$£¥₹]))"
                rf"{_AMOUNT}(?![.,:/'’-]?\w)(?:[ \u00a0\u202f]?(?:{unit}|units)(?![\w]))?",
                re.IGNORECASE,
            ),
        ),
        (
            "number",
            re.compile(
                r"(?<![\w.,:/+-])\d{1,9}[ ](?:out[ ])?(?:of|in|von|sur)[ ](?:the[ ])?\d{1,9}"
                r"(?![\w]|[.,:/-]\d)",
                re.IGNORECASE,
            ),
        ),
        (
            "number",
            re.compile(
                rf"(?:\+/-|±)[ ]?\d{{1,15}}(?:[.,]\d{{1,9}})?(?![.,:/'’-]?\w)"
                rf"(?:[ \u00a0\u202f]?{unit}(?![\w]))?"
            ),
        ),
        (
            "number",
            re.compile(
                rf"(?<![A-Za-z0-9_.,:/-])(?:{_DAY}[ ]?)?\d{{1,4}}[ ]?{_CLOCK}(?!之)"
                rf"(?:[ ]?\d{{1,2}}[ ]?{_CLOCK}){{0,5}}(?:[半钟鐘整])?"
                r"|(?<![A-Za-z0-9_.,:/-])\d{1,4}[ ]?分之[ ]?"
                r"[\d一二两三四五六七八九十百千]{1,4}(?![\d.,])"
            ),
        ),
        (
            "tex",
            re.compile(
                r"\$\$[^$]{1,2000}\$\$|\\\([^\n]{1,300}?\\\)|\\\[[^\[\]]{1,1000}?\\\]"
                r"|(?<![\w$\\])\$(?=[^$\n]{0,300}[\\^_=<>{}]|[A-Za-z]{1,2}\$)"
                r"(?![\s\d])[^$\n]{1,300}(?<![\s\\])\$(?![\w$])"
                r"|(?<![\w:\\])\\[A-Za-z]{1,30}\*?(?:\[[^\[\]\n]{0,200}\]){0,2}"
                r"(?:\{(?:[^{}\n]|\{[^{}\n]{0,200}\}){0,400}\}){0,3}"
            ),
        ),
    )
