"""Source code with much text in it: comments, docstrings and literals are set aside, then judged.

What is left of a program are statements; what is left of prose is prose. No parser is asked: a
file cut off at its end, or a page out of the middle of one, is code as well. It knows the shapes of
statements, not the languages: a dialect in which these look like sentences is taken for prose.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .shapes import ends

_SAMPLE = 60_000
_MOST_LINES = 600
_FEWEST = 4
_ASIDE = re.compile(
    r"(?P<text>[bfrBFRu]{0,2}'''[\s\S]*?(?:'''|\Z)|\"\"\"[\s\S]*?(?:\"\"\"|\Z))"
    r"|(?P<block>/\*[\s\S]*?(?:\*/|\Z)|<!--[\s\S]*?(?:-->|\Z)"
    r"|\#\[(?P<deep>=*)\[[\s\S]*?(?:\](?P=deep)\]|\Z)"
    r"|^=(?:pod|head\d|begin|over|item|encoding)\b[\s\S]*?(?:^=(?:cut|end)\b.*$|\Z)"
    r"|<<[-~]?[ ]?[\"']?(?P<here>[A-Z_]{2,30})[\"']?[^\n]*\n"
    r"[\s\S]{0,2000}?\n[ \t]*(?P=here)[ \t]*$)"
    r"|(?P<string>(?<!\\)\"(?:[^\"\\\n]|\\.){0,2000}+(?:\"|\Z)"
    r"|(?<![\w)\]\\])[bfrBFRu]{0,2}'(?:[^'\\\n]|\\.){0,2000}+(?:'|\Z))"
    r"|(?P<line>^[ \t]*(?:#(?!(?:include|define|undef|if|ifdef|ifndef|else|elif|endif|pragma"
    r"|error|line|import)\b|!)"
    r"|//|--(?![-\w])|;|%(?![%{])|!|\"(?=[^\"\n]*$)|dnl\b|(?:rem|REM)\b|\.\\\"|\*(?=[ /]|$)).*"
    r"|(?<=[\s;,){}\]])(?:\#[ !*-]|//(?!/)).*|(?<=;)[ \t]*--[ ].*)",
    re.MULTILINE,
)
_WORD = r"[^\W\d_][^\W\d_A-Z]*+(?:['’-][^\W\d_A-Z]++)*+"
_SAID = re.compile(
    rf"(?<![\w$@.]){_WORD}(?:,? {_WORD}){{3,}}(?![\w(=])|[\u3040-\u30ff\u4e00-\u9fff]{{8}}"
)
_MARKUP = re.compile(
    r"[A-Z][\w-]*: [^=;{]*$|\s*(?:\.\. |[*+•] \w|- \w[^:=]*$|#{1,6} |:\w+(?: \w+)?: |>"
    r"|\|.*\|\s*$|\d{1,3}[.)] \w|[=~^*+-]{4,}\s*$)"
)
_NEUTRAL = re.compile(
    r"[\s\[\](){},:;]*+(?:[A-Za-z_][\w.]*+ ?:(?= ?[\"\d\[{(-]) ?)?+"
    r"(?:(?:\"\"|-?\d[\w.]*+|True\b|False\b|None\b|true\b|false\b"
    r"|null\b)[\s\[\](){},:+=>-]*+){0,200}$"
    r"|\s*+</?[A-Za-z!][^<>]*+>"
)
_STRONG = re.compile(
    r"(?:(?:async )?def +\w+.*[(:,\\]$|class +\w+[^.]*[:{,(]$|from +[\w.]+ +import\b"
    r"|(?:import|use|package|module|extern crate|require|require_relative|using|@import"
    r"|cimport) +[\w.:*{\"'\\]+(?: as \w+|,.*|[ }].*)?;?$"
    r"|#!|#\s?(?:include|define|undef|if|ifdef|ifndef|else|elif|endif|pragma|error)\b"
    r"|@[\w.]+(?:\(.*)?$"
    r"|(?:if|elif|while|for|with|except|match|case)\b.*:$|(?:else|try|finally):$"
    r"|(?:if|for|while|switch|foreach|elseif|unless|until|\} ?else if|else if|catch|repeat)\s*\(.*"
    r"|(?:if|elif|while|until) .*; ?(?:then|do)$|for \w+ in .*; ?do$|(?:then|else|fi|do|done"
    r"|esac|endif|end|end if|end do|endfunction)$"
    r"|case .* in$|[\w|*.\"-]+\)$|;;$|\w[\w:-]* ?\(\) ?\{?$|(?:sub|function|proc|fn|func|fun"
    r"|pub fn) +[\w:.]+.*[{(]?$"
    r"|(?:public|private|protected|static|final|export|abstract|override|const|let|var|val|mut"
    r"|my|our|local|typedef|struct|enum"
    r"|union|namespace|template|inline|constexpr|extern|impl|trait|type|interface|unsigned|void"
    r"|int|char|bool|float|double|long"
    r"|cdef|cpdef|ctypedef|declare|readonly|set|unset|shift|exit|echo|printf)\b.*[;{(,=:)>]$"
    r"|(?:ifn?eq|ifn?def|include|define|export|override|syn|syntax|hi|highlight|au|autocmd|let"
    r"|setlocal|call|exec?) *\S*[ (].*[\W_]"
    r"|return\b.*[;)\]}]$|(?:return|yield|raise|throw|assert|break|continue|pass|await|del|die"
    r"|local|export)\b[^.]*;?$"
    r"|[\w.\[\]$@{}\"*&>:/-]+ *(?:[-+*/|&^%.:?]|<<|>>|//|\*\*|\|\||&&)?=(?![=~]) *\S.*"
    r"|[\w.\[\]]+: *[\w.\[\], |\"]+ *= *\S.*"
    r"|[\w.$:>\[\]-]*\w\(.*[);{,(\\]$|\.\w+\(.*|.*[;{]$|\[[\w .:\"/-]+\]$"
    r"|[)\]}]+[;,):{]*(?: else.*| while.*)$"
    r"|.*[\w)\]\"] ?\{ ?(?:\|.*\|)?$|.*(?:->|=>)[ ]?\S.*[{;,)]$|.*[^\w\s.!?,;:'’\")\]-][,\\]?$"
    r"|.*\\$"
    r"|\((?:def\w+|let\*?|if|when|unless|setq|require|provide|cond|lambda|interactive|add-\w+"
    r"|progn|define[\w-]*)\b"
    r"|(?:CREATE|ALTER|DROP|INSERT|SELECT|UPDATE|DELETE|GRANT|REVOKE|COMMENT ON|AS|LANGUAGE"
    r"|RETURNS|FROM|WHERE|(?:LEFT |INNER )?JOIN"
    r"|GROUP BY|ORDER BY|VALUES|SET|DECLARE|WITH|PRIMARY KEY|FOREIGN KEY|IN|OUT|RUN|COPY|ENV"
    r"|CMD|ENTRYPOINT|WORKDIR|EXPOSE|ARG)\s.*)"
)
_SURE = re.compile(
    r"(?:import [\w.]+(?: as \w+)?|from [\w.]+ c?import [\w*(].*|RETURNS \w+"
    r"|fi|done|esac|[a-z]\w* \"\"[,;]?"
    r"|# ?(?:else|endif)"
    r"|(?:cdef|cpdef|ctypedef|end|call|implicit|integer|real|complex|logical|subroutine)\b.*[\w)(]"
    r"|namespace (?:export|eval|import) .*)$"
)
_WEAK = re.compile(
    r"(?:[\w.$@*&\"'<>:-]+[,;:)\]}]*$|\"\"|[)\]}({\[]|[+&|.=?:*/<>-]|\S+ ?[=(\[{<]|.*[,({\[|&+=:]$"
    r"|(?:if|elif|else|for|while|and|or|not|in|return|raise|yield|assert|del|global|nonlocal"
    r"|lambda|print|is|end|set\w*)\b"
    r"|#\s?(?:else|endif|pragma)\b)"
)
_PUNCTUATION = re.compile(r"[=(){}\[\];<>&|$_\\@/*]|\"\"|::|->|\w\.\w|^#|:$|,$")
_REMARK = re.compile(r"^[ \t]*[#;!].*$", re.MULTILINE)
_SECTION = re.compile(r"\[[^\[\]\n]{1,80}\]\s*$")
_SETTING = re.compile(
    r"[ \t]*(?:export +|set +)?(?P<name>[A-Za-z_][\w.*/-]*(?:\[\w*\])?)[ \t]*(?:[+:?]?=(?!=)"
    r"|:(?=[ \t]))"
)
_WRAPPED = re.compile(r"^[ \t]*#+ .*[\w,]\n[ \t]*#+ [a-z]", re.MULTILINE)


def is_source(text: str, *, is_picked: bool = False) -> bool:
    r"""Whether a text is a program, or a part of one, whatever is written in its comments.

    Lines ``is_picked`` out of programs need not belong together: half of them may be words of a
    comment.

    >>> is_source("import os\n\ndef f(a):\n    # what it does\n    b = a + 1\n    return b")
    True
    """
    sample = text[:_SAMPLE].replace("\r\n", "\n")
    if _is_source(sample, is_picked=is_picked):
        return True
    for quote in ('"""', "'''"):  # the page may begin inside a docstring
        if quote in sample and _is_source(quote + sample):
            return True
    at = sample.find("*/")
    return at >= 0 and "/*" not in sample[:at] and _is_source(sample[at + 2 :])


def is_settings(text: str) -> bool:
    """Whether the lines are settings: names with values, under names in brackets (INI, .env)."""
    sample = text[:_SAMPLE].replace("\r\n", "\n")
    if "=" not in sample:
        return False
    lines = [line for line in _REMARK.sub("", sample).split("\n") if line.strip()][:_MOST_LINES]
    names = [m["name"] for line in lines if (m := _SETTING.match(line))]
    sections = sum(bool(_SECTION.match(line)) for line in lines)
    more = sum(line[0] in " \t" and not _SETTING.match(line) for line in lines)
    fits = len(names) + sections + (more if sections else 0)
    is_distinct = len(set(names)) > 0.6 * len(names) or sections > 0
    return len(names) > 1 and len(names) >= more and fits >= 0.95 * len(lines) and is_distinct


def _is_source(sample: str, *, is_picked: bool = False) -> bool:
    lines = bare(sample)
    if any(line.lstrip().startswith(("```", "~~~")) for line in lines):
        return False
    num_lines = sum(not line.isspace() for line in sample.split("\n") if line)
    if not lines:
        return num_lines >= 6 and bool(_WRAPPED.search(sample)) and _is_hashed(sample)
    count = strong = said = fits = data = 0
    for line in lines:
        body = ends(line.strip())
        if _MARKUP.match(ends(line)):
            said += 1
        elif _NEUTRAL.match(body):
            data += '""' in body or body[-1] == ","
            continue
        elif body[0] not in "#\\" and _SAID.search(body) and not _is_statement(body):
            said += 1
        elif _SURE.match(body) or (_STRONG.match(body) and _PUNCTUATION.search(body)):
            strong += 1
            fits += 1
        elif _WEAK.match(body) or _PUNCTUATION.search(body):
            fits += 1
        count += 1
    if is_picked:
        return strong >= max(2, 0.2 * count) and said <= 0.5 * count
    if count < _FEWEST:
        is_set_aside = sum(map(len, lines)) < 0.6 * len(sample)
        if not said and data > max(6, 0.9 * len(lines)):
            return True
        is_all = fits == count and count > 0 and strong >= 0.5 * count
        is_sure = count > 1 and any(map(_SURE.match, lines))
        is_more = num_lines > count or len(sample) > 400
        return is_all and (is_sure or (is_set_aside and is_more))
    return strong >= max(3, 0.25 * count) and fits >= 0.7 * count and said <= 0.15 * count


def _is_statement(body: str) -> bool:
    """Whether a line with several words in a row is one, as ``if a not in b and c:`` is."""
    if body.startswith("from ") and " import " in body:
        return True
    return bool(_STRONG.match(body)) and len(_PUNCTUATION.findall(body)) * 4 >= body.count(" ")


def _is_hashed(sample: str) -> bool:
    """Whether every line is a comment that begins with ``#``."""
    return all(line.lstrip()[:1] in ("#", "") for line in sample.split("\n"))


def bare(text: str) -> Sequence[str]:
    """Return the lines that are neither blank nor all comment or literal, without these."""
    stripped = _ASIDE.sub(_put, text)
    lines = [line.rstrip() for line in stripped.split("\n")]
    lines = [line for line in lines if line.strip() and line.strip() not in ('""', '"";')]
    step = -(-len(lines) // _MOST_LINES) or 1
    return lines[::step]


def _put(found: re.Match[str]) -> str:
    return "" if found.lastgroup in ("line", "block") else '""'
