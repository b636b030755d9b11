"""What must stay whole inside a line of prose, as regular expressions.

Each pattern is linear: it starts with a rare character or a fixed boundary, and its repeats are
bounded or cannot overlap.
"""

from __future__ import annotations

import re

from .designations import designations
from .quantities import quantities

_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
    r"|januar|februar|märz|mai|juni|juli|oktober|dezember"
    r"|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre"
    r"|enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
    r"|gennaio|febbraio|aprile|maggio|giugno|luglio|settembre|ottobre|dicembre"
    r"|janeiro|fevereiro|março|maio|junho|julho|setembro|outubro|novembro|dezembro"
    r"|januari|februari|maart|mei|augustus"
    r"|января|февраля|марта|апреля|мая|июня|июля|августа|сентября|октября|ноября|декабря)"
)
_UNIT = (
    r"(?:[ap]\.?\s?m\b\.?|%|‰|°\s?[CF]?|€|\$|£|¥|₹|[kMGTP]i?B(?:/s|ps)?|bytes?|bits?|[kMG]?Hz|[kmcµnp]?m(?:[²³2-3])?"
    r"|[kmµ]?g|[mµn]?s|secs?|seconds?|mins?|minutes?|hrs?|hours?|days?|weeks?|months?|years?|h|[mcd]?l"
    r"|m?bar|psi|h?k?M?Pa|rpm|[mµn]?mol(?:/[mdµ]?l)?|[mµn]?g/[mdk]?[lg]|IU(?:/l)?|mmHg|bpm|dB|k?cal|kJ|Nm|ppm"
    r"|km/h|mph|fps|px|pt|[kMG]?W(?:h)?|[mk]?V|[mk]?A|tokens?|million|billion|thousand|trillion"
    r"|Mio\.?|Mrd\.?|Prozent|percent|pct|USD|EUR|GBP|JPY|CHF|CNY|INR|euros?|dollars?|pounds?"
    r"|UTC(?:[+-]\d{1,2})?|GMT|CES?T|[PECM][SD]T|BST|JST|x|[₽₴₺₩₪]|руб(?:\.|л\w{1,2})?|грн\.?|zł|Kč|Ft|kr\.?"
    r"|лет|год(?:а|у)?|г\.?|кг|км(?:/ч)?|[см]?м²?|час(?:а|ов)?|мин(?:ут\w?)?\.?|дн(?:ей|я)|недел[ьию]|месяц(?:а|ев)?"
    r"|Uhr|Tage?n?|Wochen?|Monate?n?|Jahre?n?|Stunden?|Std\.?|Minuten?|jours?|semaines?|mois|ans|heures?"
    r"|días?|años?|semanas?|mes(?:es)?|horas?|giorni|anni|dias|anos|dagen|ft|feet|oz|lbs?|miles?|yards?|acres?"
    r"|inch(?:es)?|cups?|gallons?|[kM]?(?:Ω|Ohm)|[µnp]F|K)"
)
_SCALE = (
    r"(?:тыс\.?|млн\.?|млрд\.?|Mio\.?|Mrd\.?|Millionen|Milliarden|millions?|milliards?|billion"
    r"|thousand)"
)
_NUMBER = (
    r"(?:\d{1,3}(?:[ \u00a0\u202f]\d{3}){1,6}(?:[.,]\d{1,20})?(?![.,:/-]?\d)"
    r"|\d{1,40}(?:[.,:/'’]\d{1,20}){0,8}(?:[ \u00a0\u202f]\d{3}(?![.,:/-]?\d)){0,6})"
)
_TIME = r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?"
_WIDE_END = r"。，、；：！？「」『』（）【】《》〈〉"

PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("code", re.compile(r"``[^\n]{1,2000}?``|`[^`\n]{1,2000}`")),
    (
        "link",
        re.compile(
            r"!?\[(?:[^\[\]\n]|!\[[^\[\]\n]{0,300}\]\([^()\n]{0,2000}\)|\[[^\[\]\n]{0,300}\]){0,500}\]"
            r"(?:\((?:[^()\n]|\([^()\n]{0,500}\)){0,2000}\)|\[[^\[\]\n]{0,200}\])"
        ),
    ),
    (
        "url",
        re.compile(
            r"<(?:mailto:|[A-Za-z][A-Za-z0-9+.-]{1,15}://)[^\s<>\"`]{1,2000}>"
            rf"|(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{{1,15}}://[^\s<>\"`{_WIDE_END}]+"
        ),
    ),
    (
        "email",
        re.compile(
            r"<[A-Za-z0-9][\w.+-]{0,63}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+>"
            r"|(?<![\w.+-])[A-Za-z0-9][\w.+-]{0,63}@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
        ),
    ),
    (
        "template",
        re.compile(
            r"\{\{[^{}\n]{0,500}\}\}|\{%[^\n]{0,500}?%\}|\{#[^\n]{0,500}?#\}|\$\{[^{}\n]{0,500}\}"
            r"|\{[\w.!:$-]{0,80}\}|%\(\w{1,80}\)[sdifr]|<\|[^|<>\n]{1,80}\|>|<</?SYS>>"
            r"|\[/?(?:INST|SEP|CLS|PAD|MASK|UNK|BOS|EOS|NEW\d+)\]"
        ),
    ),
    ("comment", re.compile(r"<!--.{0,2000}?-->", re.DOTALL)),
    ("tag", re.compile(r"</?[A-Za-z][\w:.-]{0,80}(?:\s[^<>]{0,2000})?/?>")),
    *quantities(_UNIT),
    *designations(_UNIT),
    (
        "number",
        re.compile(
            rf"(?<![\w.])(?:\d{{1,2}}(?:st|nd|rd|th|er|\.)?\s(?:of\s|de\s)?{_MONTH}(?!\w)\.?"
            rf"(?:,?\s(?:de\s)?\d{{4}}(?:\sг(?:\.|ода))?)?"
            rf"|{_MONTH}(?!\w)\.?\s\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s\d{{4}})?"
            rf"|\d{{4}}-\d{{2}}-\d{{2}}[T ]{_TIME}(?:\s?[+-]\d{{2}}:?\d{{2}}|Z)?"
            rf"|\d{{1,4}}[/.-]\d{{1,2}}[/.-]\d{{1,4}},?\s{_TIME}(?:\s?[AP]M)?"
            rf"|[€$£¥₹]\s?{_NUMBER}(?:\s?(?:million|billion|thousand|trillion|[kKmMbB]n?)\b)?"
            rf"|[A-Za-z_]{{1,24}}:\s\d[\w.:%-]*(?<![.:-])"
            rf"|[+-]?{_NUMBER}(?:[ \u00a0\u202f]{_SCALE})?[ \u00a0\u202f]"
            rf"(?:{_UNIT}|{_SCALE})(?![\w])"
            rf"|{_TIME}\s?[ap]\.?m\b\.?"
            rf"|\+\d{{1,3}}(?:[ -]\(?\d{{1,12}}\)?){{1,6}}"
            rf"|[A-Z]{{2}}\d{{2}}(?:\s[0-9A-Z]{{4}}){{1,7}}(?:\s[0-9A-Z]{{1,3}})?(?![\w])"
            rf"|\d{{1,3}}(?:[ \u00a0\u202f]\d{{3}}){{1,6}}(?:[.,]\d{{1,20}})?(?![.,:/-]?\d)"
            rf"|(?:No|Nr|Fig|Eq|Sec|Tab|Ch|Art|Abb|p|pp|v|ver|version|page|§)\.?\s\d(?:[\w.-]*\w)?(?!\w))"
            r"(?<=[\w.%‰°€$£¥₹₽₴₺₩₪²³)])",
            re.IGNORECASE,
        ),
    ),
    (
        "name",
        re.compile(
            r"(?<![\w.])(?:(?:Mr|Mrs|Ms|Dr|Prof|Mme|Mlle|Sra?)\.?|M\.|Herr|Frau|Sir)[ ]"
            r"(?:[A-Z]\.[ ]){0,2}"
            r"[A-Z\u00c0-\u00de][\w'’-]{1,30}"
        ),
    ),
    (
        "pair",
        re.compile(
            r"^[ \t]*+(?P<pair>[\w.\-/]{1,80}(?:[ \t]*=[ \t]*|:[ \t]+)\S{1,200})[ \t]*\r?$",
            re.MULTILINE,
        ),
    ),
    ("path", re.compile(r"\"(?:[A-Za-z]:\\|\.{0,2}/|~/|\\\\)[^\"\n]{1,300}\"")),
)
"""Kind and pattern; where two overlap, the one that starts first wins, then the order here."""

MARKER = re.compile(
    r"^[ \t]*+(?P<mark>(?:>[ \t]?){1,6}(?:[-*+][ \t]|\d{1,3}[.)][ \t])?"
    r"|#{1,6}(?=[ \t])"
    r"|(?:[-*+•‣◦·–—]|\(?(?:\d{1,3}|[a-zA-Z])[.)])(?=[ \t])(?:[ \t]+\[[ xX]\](?=\s))?"
    r"|(?:[A-Z][\w.'’-]{0,30}(?:[ ][A-Z][\w.'’-]{0,30}){0,3}|[QA])[ ]?:(?=[ \t]))",
    re.MULTILINE,
)
"""What heads a line and means nothing without it: quote, heading, bullet, number, speaker."""

ABBREVIATION = re.compile(
    r"(?:[A-Za-z]\.)+[A-Za-z]?\.?|(?:Dr|Mr|Mrs|Ms|Prof|St|vs|etc|approx|No|Nos|Fig|Inc|Ltd|Jr|Sr|cf|al"
    r"|bzw|usw|ca|Nr|Abb|resp|Sra?|Mme|Mlle|Vol|Art|Eq|Sec|Ch|pp?|Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\."
)
"""Words whose period is part of them."""
