"""What the lines of a log look like: time stamps, levels, what two lines have in common."""

from __future__ import annotations

import re

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CLOCK = r"\d{2}:\d{2}(?::\d{2}(?:[.,]\d{1,9})?)?"
_ZONE = r"(?: ?(?:Z\b|UTC\b|GMT\b|[+-]\d{2}:?\d{2}\b))?"

STAMP = re.compile(
    r"[ \t]{0,8}+(?:[\w.-]{1,40}[ ]*\|[ ]+)?(?:\w{1,12}=)?[\[(<\"]?(?:"
    rf"\d{{4}}[-/.]\d{{2}}[-/.]\d{{2}}(?:T|[ ,]{{1,2}}){_CLOCK}{_ZONE}"
    rf"|\d{{1,2}}[-/.]\d{{1,2}}[-/.]\d{{2,4}}[ ,]{{1,2}}{_CLOCK}(?: [AP]M\b)?"
    rf"|\d{{2}}-\d{{2}} {_CLOCK}"
    rf"|(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) )?{_MONTH} {{1,2}}\d{{1,2}} {_CLOCK}(?: \d{{4}})?"
    rf"|\d{{1,2}}/{_MONTH}/\d{{4}}:{_CLOCK}(?: [+-]\d{{4}})?"
    r"|\d{2}:\d{2}:\d{2}[.,]\d{3,9}|[ ]{0,12}\d{1,12}\.\d{6}(?=\])|\d{10}(?:\.\d{3,6}|\d{3})?"
    r")[\])>\"]?(?![\w.])"
)
"""A time stamp that begins a line, after the name of a container or a key such as ``time=``."""
LEVEL = re.compile(
    r"\b(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|SEVERE|PANIC)\b[\]:|) ]"
    r"|\[(?:trace|debug|info|notice|warn|warning|error|err|crit|fatal|[DIWEF])\]"
    r"|\blevel=\w+|^[ \t]*[DIWEF]/[\w.]+\("
)
PRESSING = re.compile(
    r"\b(?:ERROR|ERR|WARN|WARNING|FATAL|CRITICAL|SEVERE|PANIC|Traceback|Exception|[Ee]rrors?|[Ww]arnings?"
    r"|[Ff]ailed|[Ff]ailure|FAILED|FAILURE|[Ff]atal|[Pp]anic|segfault|[Dd]enied|[Tt]imed out)\b"
    r"|\w(?:Error|Exception)\b"
)
"""What says that a line tells of something wrong."""

_MASKED = re.compile(
    r"0[xX][0-9a-fA-F]+|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b(?=[a-fA-F]{0,40}\d)(?=\d{0,40}[a-fA-F])[0-9a-fA-F]{7,64}\b|\d+"
)
_SAMPLE = 400


def is_log(text: str) -> bool:
    """Whether most lines begin with a time stamp or name a level; a stack trace may lie between."""
    lines = [line for line in text[:200_000].splitlines() if line.strip()][:_SAMPLE]
    marked = sum(bool(STAMP.match(line[:100]) or LEVEL.search(line[:100])) for line in lines)
    loose = [line for line in lines if line[0] not in " \t"]
    return marked >= 4 and marked >= 0.3 * len(lines) and marked >= 0.6 * len(loose)


def template(line: str) -> str:
    """Return a line without what changes: numbers, addresses, ids, times (Drain, section III-A).

    >>> template("10:00:01 node-7 at 0xff12: 15 ms") == template("10:00:02 node-31 at 0x0: 9 ms")
    True
    """
    return _MASKED.sub("0", line.strip())
