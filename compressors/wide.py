"""Pieces of scripts that are written without spaces, and emoji."""

from __future__ import annotations

import re
from collections.abc import Iterator

_HAN = r"々〆〇ヶ\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HIRAGANA = r"\u3041-\u309f"
_KATAKANA = r"\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_SOUTHEAST = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
_EMOJI = r"\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff"

WIDE = re.compile(
    rf"[{_HAN}{_HIRAGANA}{_KATAKANA}{_SOUTHEAST}{_EMOJI}。！？｡，、；：（）「」『』【】《》]"
)
"""Any character whose neighbours may be another unit without white space between."""

_NUMERAL = "〇一二三四五六七八九十百千万億亿兆"
_MEASURE = "年月日时時分秒元円个個名人次倍歳岁件点章页頁"
_MARKS = "。！？｡，、；：（）「」『』【】《》〈〉〔〕［］"
_OTHER = rf"{_HAN}{_HIRAGANA}{_KATAKANA}{_SOUTHEAST}{_EMOJI}{_MARKS}"
_PIECE = re.compile(
    rf"(?P<number>(?:(?<![A-Za-z0-9_.,:-])\d[\d.,:]*(?=[{_MEASURE}])|[{_NUMERAL}]+(?=[{_MEASURE}])"
    rf"|[{_NUMERAL}]{{2,}})(?:[{_MEASURE}](?:(?:\d[\d.,]*|[{_NUMERAL}]+)(?=[{_MEASURE}]))?)*)"
    rf"|(?P<han>[{_HAN}]{{1,30}})|(?P<hiragana>[{_HIRAGANA}]{{1,12}})"
    rf"|(?P<katakana>[{_KATAKANA}]{{1,40}})|(?P<southeast>[{_SOUTHEAST}]{{1,40}}(?<![เแโใไເແໂໃໄ]))"
    rf"|(?P<emoji>[\U0001f1e6-\U0001f1ff]{{2}}|[{_EMOJI}])|(?P<stop>[。！？｡]+)|(?P<comma>[，、；：])"
    rf"|(?P<open>[（「『【《〈〔［])|(?P<close>[）」』】》〉〕］])|(?P<other>[^{_OTHER}]+)|(?P<rest>.)",
    re.DOTALL,
)
_ROLES = {"stop": "end", "comma": "join", "open": "open", "close": "close"}
_PARTICLES = re.compile(
    "は|が|を|に|の|と|で|も|へ|や|か|ね|よ|から|まで|より|など|では|には|とは|への|での|という"
    "|です|ます|でした|ました|である"
)
_FUNCTION_WORDS = re.compile(
    "(?<![目])的|了|吗|呢|吧|因为|所以|但是|如果|虽然|以及|或者|并且|而且|然而|因此|于是|我们|你们|他们"
    "|它们|这些|那些|这个|那个|这种|一个|一些|可以|已经|正在|对于|关于|由于|其中"
)


def wide_pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int, str]]:
    """Yield (start, end, what) for a stretch without white space.

    ``what`` is a unit's role, "particle" for a function word, or "other" for a stretch of
    scripts with spaces, which the caller splits. Chinese and Japanese have no word borders on
    paper: a run of Han characters between function words stays together up to thirty, with the
    hiragana that inflects it; particles stand alone. Thai, Lao, Khmer and Burmese runs stay
    together up to forty characters.
    """
    last: tuple[int, int] | None = None
    for match in _PIECE.finditer(text, start, end):
        kind, (a, b) = match.lastgroup or "rest", match.span()
        if kind == "hiragana" and not _PARTICLES.fullmatch(match[0]):
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
            for particle in _FUNCTION_WORDS.finditer(text, a, b):
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
