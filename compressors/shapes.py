"""Recognising data and code by what their lines look like. Each check errs towards "no"."""

from __future__ import annotations

import csv
import re
import tomllib
from collections import Counter
from collections.abc import Iterable

_SAMPLE = 400
_LONGEST = 600
_TAG = re.compile(r"<[^<>]{1,2000}>")
_ROOT = re.compile(r"\s*<([A-Za-z][\w:.-]*)(?:\s[^<>]*)?>.*</\1\s*>\s*\Z", re.DOTALL)
_DECIMAL_TIME = re.compile(r"\d\d:\d\d(?::\d\d)?,\d")
_YAML = re.compile(
    r"\s*(?:- +)?(?:[\w.$/-]+|\"[^\"]*\"|'[^']*') *:(?: +\S.*| *)$|\s*- +\S.*$|\s*-$"
)
_YAML_KEY = re.compile(r"(?P<key>[A-Za-z_$][\w.$/-]*) *:(?P<value>\s.*|)$")
_BLOCK = re.compile(r"(?::|^\s*-) +[|>][+-]?\d?[+-]?\s*(?:#.*)?$")
_CODE = re.compile(
    r"\s+#\s|\s*(?:"
    r"(?:def|class|async def) +\w+.*:\s*(?:#.*)?$"
    r"|(?:if|elif|for|while|with|try|except|else|finally)\b.*:$"
    r"|from +[\w.]+ +import\b|import +[\w.{*\"'<]+|@\w+(?:[.\w]+)?(?:\(.*)?$"
    r"|#(?:include|define|if|ifdef|ifndef|endif|pragma)\b"
    r"|(?:public|private|protected|static|final|export|abstract|override)\s+[\w<>\[\], ]+.*[{;(]?$"
    r"|(?:func|fn|function|package|struct|enum|interface|impl|namespace|using|typedef|type)\s+[\w(]"
    r"|(?:raise|assert|yield|await|del|pass|break|continue)\b(?:[^.]*|.*[)\]}])$"
    r"|(?:const|let|var|val|mut)\s+\w|return\b(?:[^.]*|.*[)\]}])$"
    r"|(?:if|for|while|switch|else if|catch)\s*\(|\}?\s*else\s*\{?$"
    r"|[\w.\[\]*&>-]+ *(?::?=|\+=|-=|\*=) *\S|[\w.]+\(.*[;{,)]\s*$"
    r"|.*[;{}]\s*(?://.*)?$|[)\]}]+[;,)]*$|(?://|/\*|\*/|\* |\*$)|'''|\"\"\"|#!/"
    r"|(?:SELECT|INSERT INTO|CREATE TABLE|UPDATE|FROM|WHERE|JOIN)\s)"
)
_STRONG = re.compile(
    r"\s*(?:def \w+\(|class \w+.*[:{]\s*$|from [\w.]+ import |import [\w.]+;?\s*$|#include\s"
    r"|package [\w.]+;?\s*$|func [\w(].*\{\s*$|fn \w|function \w*\("
    r"|(?:public|private|protected|static) .*[{;(]\s*$|#!/|.*[;{]\s*$|(?:const|let|var) \w+ *="
    r"|return\b.*;\s*$|SELECT |CREATE TABLE )"
)

_SAID = re.compile(
    r"\s*(?!(?:public|private|protected|static|final|const|using|import|from|package|return|SELECT)\b)"
    r"[A-Za-z'’]+(?:[,;]? [A-Za-z'’]+){3,}[;:,]?\s*$"
)
_OPENS = re.compile(
    r"\s*(?:(?:async )?def \w+\(.*:|class \w+.*[:{]|@\w[\w.]*(?:\(.*\))?"
    r"|(?:for|while|if|with) .*[\w)\]]:"
    r"|try:|func [\w(].*\{|(?:pub )?fn \w.*\{|(?:export )?(?:async )?function\b.*\{"
    r"|(?:if|for|while) ?\(.*\{"
    r"|(?:public|private|protected|static) .*\{|\w[\w<>*& ]* \w+\([^()]*\) ?\{"
    r"|(?:const|let|var) \w+ *=.*[{(])"
    r"\s*(?:#.*|//.*)?$"
)
_SQL = re.compile(
    r"\s*(?:SELECT\s[^.]*\sFROM\s|INSERT\s+INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s"
    r"|CREATE\s+(?:OR REPLACE\s+)?(?:TABLE|VIEW|INDEX)\s|ALTER\s+TABLE\s|WITH\s+\w+\s+AS\s*\()",
    re.IGNORECASE,
)
_SQL_UPPER = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|WITH)\b")
_CLAUSE = re.compile(
    r"\s*(?:SELECT|FROM|WHERE|(?:LEFT |RIGHT |INNER |OUTER |CROSS |FULL )*JOIN|ON|AND|OR|GROUP BY"
    r"|ORDER BY|HAVING|LIMIT|OFFSET|UNION|VALUES|SET|INSERT|UPDATE|DELETE|CREATE|ALTER|WITH"
    r"|[()])|.*[,;()]\s*$",
    re.IGNORECASE,
)


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()][:_SAMPLE]


def ends(line: str) -> str:
    """Return both ends of a long line: how it begins and ends says what it is."""
    return line if len(line) <= _LONGEST else line[: _LONGEST // 2] + line[-_LONGEST // 2 :]


def is_xml(text: str) -> bool:
    """Whether the text is one element, or declares XML or HTML; prose in a tag is not."""
    body = text.lstrip("\ufeff \t\r\n")
    if body[:5].lower() == "<?xml" or re.match(r"<!doctype|<html[\s>]", body, re.IGNORECASE):
        return True
    if not body.startswith("<") or not _ROOT.match(body):
        return False
    marked = sum(len(tag) for tag in _TAG.findall(body))
    return marked > 0.3 * len(body) and len(_TAG.findall(body)) >= 4


def is_toml(text: str) -> bool:
    """Whether the text is TOML with at least two keys."""
    if not re.search(r"^[\w.\"-]+ *= *\S", text, re.MULTILINE):
        return False
    try:
        return len(tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))) > 0
    except (ValueError, RecursionError):
        return False


def is_yaml(text: str) -> bool:
    """Whether each document is YAML: keys, items and block texts.

    A transcript (``Ann: Hello.``) has long values or repeats its keys.
    """
    lines = _without_block_texts(ends(line) for line in _lines(text) if line.lstrip()[0] != "#")
    documents: list[list[str]] = [[]]
    for line in lines:
        if line.rstrip() in ("---", "..."):
            documents.append([])
        else:
            documents[-1].append(line)
    found = [document for document in documents if document]
    is_front = len(lines) > 1 and lines[-1].strip() == "---"
    return sum(map(len, found)) >= 3 and not is_front and all(map(_is_yaml, found))


def _without_block_texts(lines: Iterable[str]) -> list[str]:
    """Return the lines without the texts that ``key: |`` and ``key: >`` begin."""
    found: list[str] = []
    block: int | None = None
    for line in lines:
        indent = len(line) - len(line.lstrip())
        if block is not None and indent > block:
            continue
        block = indent if _BLOCK.search(line) else None
        found.append(line)
    return found


def _is_yaml(lines: list[str]) -> bool:
    keys = [m for line in lines if (m := _YAML_KEY.match(line))]
    names = Counter(match["key"] for match in keys)
    indented = sum(line[0] in " \t" for line in lines)
    fits = sum(bool(_YAML.match(line)) for line in lines)
    if fits < 0.9 * len(lines) or max(names.values(), default=0) > 1:
        return False
    if not keys:  # a list of records
        heads = [m for line in lines if (m := _YAML_KEY.match(line[2:])) and line[:2] == "- "]
        inner = [m for line in lines if (m := _YAML_KEY.match(line.lstrip())) and line[0] == " "]
        short = sum(len(match["value"]) <= 80 for match in (*heads, *inner))
        fewest = 1 if len(inner) > 3 else 2
        return len(inner) >= len(heads) >= fewest and short >= 0.8 * len(lines)
    keyed = sum(bool(re.match(r"\s*(?:- +)?[\w.$/\"'-]+ *:(?:\s|$)", line)) for line in lines)
    long = sum(len(match["value"]) > 80 for match in keys)
    return (
        (indented > 0 or len(keys) >= 3) and keyed >= 0.4 * len(lines) and long <= 0.2 * len(keys)
    )


def is_csv(text: str) -> bool:
    """Whether the rows have the same number of cells, with one of the usual delimiters."""
    lines = _lines(_DECIMAL_TIME.sub("00:00.0", text))
    if len(lines) < 3:
        return False
    for delimiter in ("\t", ",", ";", "|"):
        if sum(delimiter in line for line in lines) < 0.95 * len(lines):
            continue
        try:
            rows = list(csv.reader(lines, delimiter=delimiter))
        except csv.Error:
            continue
        width, most = Counter(map(len, rows)).most_common(1)[0]
        cells = [cell for row in rows for cell in row]
        is_indented = not any(row[0].strip() for row in rows if row)
        if width < 2 or most < 0.95 * len(rows) or is_indented:
            continue
        if _has_header(rows, cells):
            return True
        if width == 2 and len(rows) < 5 and not all(map(_is_short, cells)):
            continue
        spaced = sum(cell[:1] == " " for cell in cells) / len(cells)
        sentences = sum(len(cell) > 80 or cell.rstrip().endswith(".") for cell in cells)
        if delimiter == "|":  # a Markdown table is prose's
            return not lines[0].lstrip().startswith("|") and not re.match(r"[\s|:-]+$", lines[1])
        if spaced < 0.3 and sentences < 0.2 * len(cells):
            return True
    return False


def _has_header(rows: list[list[str]], cells: list[str]) -> bool:
    """Whether the first row names columns, and no row reads like prose with commas."""
    names = all(re.fullmatch(r"[A-Za-z_][\w.-]{0,30}", cell) for cell in rows[0])
    even = len(rows) > 2 and all(len(row) == len(rows[0]) for row in rows)
    return names and even and not any(cell[:1] == " " for cell in cells)


def _is_short(cell: str) -> bool:
    """Whether a cell is data and no half of a sentence."""
    return 0 < len(cell) <= 24 and cell == cell.strip() and cell.count(" ") < 3


def is_code(text: str) -> bool:
    """Whether most lines look like statements, and some can be nothing else."""
    lines = list(map(ends, _lines(text)))
    if text.startswith("#!/"):
        return True
    if len(lines) < 2 or "```" in text:
        return False
    fits = sum(bool(_CODE.match(line)) for line in lines)
    strong = sum(bool(_STRONG.match(line)) and not _SAID.match(line) for line in lines)
    indented = sum(line[0] in " \t" for line in lines)
    is_short = len(lines) < 12 and len(lines) > 2 and _is_short_code(lines, fits, indented)
    return is_short or (
        fits >= 0.55 * len(lines)
        and strong >= max(2, 0.15 * len(lines))
        and (indented > 0.1 * len(lines) or strong >= 0.6 * len(lines))
    )


def _is_short_code(lines: list[str], fits: int, indented: int) -> bool:
    """Whether a few lines are one function, one block in braces or one SQL statement."""
    body = "\n".join(lines)
    if _SQL.match(body) and (body.rstrip().endswith(";") or _SQL_UPPER.match(body)):
        clauses = sum(bool(_CLAUSE.match(line)) for line in lines)
        return clauses >= 0.6 * len(lines)
    base = len(lines[0]) - len(lines[0].lstrip())
    deeper = sum(len(line) - len(line.lstrip()) > base for line in lines)
    opens = _OPENS.match(lines[0])
    return bool(opens) and indented > 0 and deeper >= 0.4 * len(lines) and fits >= 0.6 * len(lines)
