"""Pieces of scripts that are written without spaces, and emoji."""

from __future__ import annotations

import re
from collections.abc import Iterator

_HAN = r"々〆〇ヶ㐀-䶿一-鿿豈-﫿\U00020000-\U0003ffff"
_HIRAGANA = r"ぁ-ゟ"
_KATAKANA = r"゠-ヿㇰ-ㇿｦ-ﾟ"
_SOUTHEAST = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_EMOJI = r"\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"
_PUNCTUATION = r"。！？｡，、；：・（）「」『』【】《》〈〉〔〕［］“”‘’…—"

WIDE = re.compile(
    rf"[{_HAN}{_HIRAGANA}{_KATAKANA}{_SOUTHEAST}{_EMOJI}。！？｡，、；：（）「」『』【】《》]"
)
"""Any character whose neighbours may be another unit without white space between."""

_PIECE = re.compile(
    rf"(?P<number>[〇一二三四五六七八九十百千万億亿兆\d](?:[〇一二三四五六七八九十百千万億亿兆.,:%]*"
    rf"[〇一二三四五六七八九十百千万億亿兆\d%])?(?:[年月日时時分秒元円个個名人次倍歳岁件点章页頁])*)"
    rf"|(?P<han>[{_HAN}]{{1,8}})|(?P<hiragana>[{_HIRAGANA}]{{1,12}})|(?P<katakana>[{_KATAKANA}]{{1,40}})"
    rf"|(?P<southeast>[{_SOUTHEAST}]{{1,40}})|(?P<emoji>[{_EMOJI}])"
    rf"|(?P<stop>[。！？｡]+)|(?P<comma>[，、；：])|(?P<open>[（「『【《〈〔［])|(?P<close>[）」』】》〉〕］])"
    rf"|(?P<other>[^{_HAN}{_HIRAGANA}{_KATAKANA}{_SOUTHEAST}{_EMOJI}。！？｡，、；：（）「」『』【】《》〈〉〔〕［］]+)"
    rf"|(?P<rest>.)",
    re.DOTALL,
)
_ROLES = {"stop": "end", "comma": "join", "open": "open", "close": "close"}
_PARTICLES = frozenset(
    re.split(
        " ",
        "は が を に の と で も へ や か ね よ から まで より など "
        "では には とは への での という です ます でした ました である",
    )
)
_CHINESE_PARTICLES = re.compile("(?<![目])的|了|吗|呢|吧")


def wide_pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, what) for a stretch without white space.

    ``what`` is a unit's role, "particle" for a function word, or "other" for a stretch of
    scripts with spaces, which the caller splits. Chinese and Japanese have no word borders on
    paper: a run of Han characters stays together up to eight, with the hiragana that inflects
    it; particles stand alone. Thai, Lao, Khmer and Burmese runs stay together up to forty
    characters.
    """
    last: tuple[int, int] | None = None
    for match in _PIECE.finditer(text, start, end):
        kind, (a, b) = match.lastgroup or "rest", match.span()
        if kind == "number" and (b - a) > 0 and text[a:b].isascii() and not _alone(text, a, b):
            kind = "other"
        if kind == "hiragana" and match[0] not in _PARTICLES:
            cut = b - 1 if b - a > 1 and text[b - 1] in "をはがの" else b
            last = (last[0] if last is not None else a, cut)
            if cut < b:
                yield (*last, "word")
                last = None
                yield cut, b, "particle"
            continue
        if last is not None:
            yield (*last, "word")
            last = None
        if kind == "han":
            for particle in _CHINESE_PARTICLES.finditer(text, a, b):
                if particle.start() > a:
                    yield a, particle.start(), "word"
                yield *particle.span(), "particle"
                a = particle.end()
            last = (a, b) if a < b else None
        else:
            yield a, b, "particle" if kind == "hiragana" else _ROLES.get(kind, _what(kind))
    if last is not None:
        yield (*last, "word")


def _what(kind: str) -> str:
    return "other" if kind in ("other", "rest") else "word"


def _alone(text: str, start: int, end: int) -> bool:
    """Whether digits touch no Latin letter, sign or digit: those belong to a longer word."""
    before = text[start - 1] if start else " "
    after = text[end] if end < len(text) else " "
    return not (before.isascii() and before.isalnum()) and not (after.isascii() and after.isalnum())
