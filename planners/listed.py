"""Is the work already divided? Prompts that say what to do with each item of a list they hold.

A tenth of the prompts that people send are such lists (ParallelPrompt, arXiv 2506.18728), which
needs no planner: template, context and items are all there. Rules only, for precision: a list that
is not recognised costs time, one that is taken for items and is not costs the answer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

MIN_ITEMS, MAX_ITEMS = 3, 200
_MAX_LINE = 1000  # characters of a prompt with a list in one line
_MARK = re.compile(
    r"(?P<indent>[ \t]*)(?P<mark>\(?\d{1,3}[.):](?!\d)|\(?[a-zA-Z][.)](?=\s)|[-*•–](?=\s))[ \t]*"
    r"(?P<text>\S.*)?$"
)
_NUMBERS = ("three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
_EACH = re.compile(
    r"\b(?:each|every)\b(?! other)|\bone by one\b|\bindividually\b|\bper item\b", re.I
)
_VERB = (
    r"(?:translate|transliterate|define|classify|label|tag|rewrite|rephrase|paraphrase|reword"
    r"|correct|proofread|punctuate|answer|solve|convert|spell|explain|describe|simplify|shorten"
    r"|expand|conjugate|pluralise|pluralize|decode|encode|negate|evaluate)"
)
_DO = re.compile(
    rf"\b{_VERB}\b[^.!?\n]{{0,80}}?\b(?:following|these|below)\b(?:\s+[\w'-]+){{0,4}}?\s+\w+s\b",
    re.I,
)
_SHORT = re.compile(
    r"\b(?:translat|classif|label|tag|correct|convert|spell|rewrit|define|antonym|synonym)", re.I
)
_ASKS = re.compile(r"\b(?:answer|solve|question)", re.I)
_BACK = re.compile(
    r"\b(?:it|its|they|them|their|he|him|his|she|hers?|this|that|these|those|same|previous|above"
    r"|your answer|former|latter|earlier|part \w)\b",
    re.I,
)
_ACROSS = re.compile(
    r"\b(?:rank|order|sort|compare|contrast|group|cluster|which|best|worst|most|least|combine"
    r"|merge|connect|relat\w+|common|together|overall|total|average|sum|both|single|story|poem"
    r"|essay|between|duplicates?|pick|choose|select|prioriti\w+|shortest|longest|first|next|then"
    r"|previous|timeline|chronolog\w+|step[- ]by[- ]step|steps|instructions|rules|requirements"
    r"|criteria|conditions|constraints|guidelines|json|yaml|xml|csv|html|table|code|function"
    r"|program|script|every other|one another|each other|all of (?:these|them|the following)"
    r"|only|remove|filter|find the|how many|summary of|conclusion|finally|also)\b"
    r"|\b(?:using|with|use|includ\w+|contain\w+|incorporat\w+|from|based on|consider\w*|address\w*"
    r"|cover\w*|mention\w*|about) (?:each|every|all|these|the following|the points|the items)\b"
    r"|\binto (?:a|an|one)\b|\b(?:a|an|one) (?:\w+ ){0,3}(?:paragraph|text|summary|list|sentence)"
    r" (?:from|with|of|that|using|about|out of)\b",
    re.I,
)
_ORDER = re.compile(
    r"(?:please |can you |could you )*(?:translate|transliterate|define|rewrite|rephrase|paraphrase"
    r"|reword|correct|proofread|punctuate|spell|simplify|shorten|pluralise|pluralize)\b"
    r"[^.!?:;\n]{0,20}\b(?:each|every|the following|these)\b[^.!?:;\n]{0,60}:",
    re.I,
)
_FORMAT = re.compile(
    r"\b(?:line|separated|commas?|semicolons?|python|format|array|numbered|bullets?|as)\b"
    r"|\beach of my\b|\bdifferent\b|\b(?:word|sentence|text|one) (?:that )?I\b",
    re.I,
)
_ODD = re.compile(r"[{}<>|=;]|->|:$|^\w+\(")  # code, tables, examples, a head of something
_INLINE = re.compile(
    r"(?P<before>[^\n]*\b(?:each|every) (?:one )?of (?:the |these )(?:following )?[^\n:]*):[ \t]*"
    r"(?P<items>[^\n:]+?)[.\s]*$",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Listed:
    """A task and the items that it is to be done for.

    ``task`` is all of the prompt but the list, ``marks`` are what stands before each item ("3.",
    "-", nothing), ``is_short`` says that the answers are a line each.
    """

    task: str
    items: tuple[str, ...]
    marks: tuple[str, ...]
    is_short: bool


def is_sure(question: str, listed: Listed) -> bool:
    """Whether nobody can mean anything else than an answer an item.

    The list is marked and is the end of the prompt, each item is one line of text, and all before
    it is one plain order of the kind "Translate each sentence to French:".
    """
    lines = [line.strip() for line in question.split("\n") if line.strip()]
    heads = zip(listed.marks, listed.items, strict=True)
    ends = [(f"{mark} {item}", f"{mark}{item}") for mark, item in heads]
    last = lines[-len(ends) :]
    is_last = len(last) == len(ends) and all(
        line in spelled for line, spelled in zip(last, ends, strict=True)
    )
    if not is_last or not all(listed.marks) or not _ORDER.fullmatch(listed.task.strip()):
        return False
    if _FORMAT.search(listed.task):
        return False
    return not any(_ODD.search(item) for item in listed.items)


def find_items(question: str) -> Listed | None:
    r"""Return the task and the items of a prompt that lists them, None where there is any doubt.

    >>> found = find_items("Translate each sentence to French:\n1. Hi.\n2. Good night.\n3. Bye.")
    >>> found.items if found else None
    ('Hi.', 'Good night.', 'Bye.')
    """
    if "```" in question or question.count("\n") > 4000:
        return None
    has_marks = any(_MARK.match(line) for line in question.split("\n"))
    found = _marked(question) if has_marks else _lines(question) or _inline(question)
    if found is None or not MIN_ITEMS <= len(found.items) <= MAX_ITEMS:
        return None
    task = found.task
    if _ACROSS.search(task) or len(task) > 4000:
        return None
    if not (_EACH.search(task) or _DO.search(task)):
        return None
    if _ASKS.search(task) and any(_BACK.search(item) for item in found.items[1:]):
        return None  # a later question may be about an earlier one
    return found if _is_counted(task, len(found.items)) else None


def _marked(question: str) -> Listed | None:
    """Find a list whose lines begin with numbers, letters or bullets."""
    lines = question.split("\n")
    heads = [(at, found) for at, line in enumerate(lines) if (found := _MARK.match(line))]
    if not heads:
        return None
    outer = len(heads[0][1]["indent"].expandtabs(4))
    inside = [pair for pair in heads if len(pair[1]["indent"].expandtabs(4)) <= outer]
    if len(inside) != len(heads) or not all(found["text"] for _, found in heads):
        return None  # nested, or an item without text
    marks = [found["mark"] for _, found in heads]
    if not _counts_on(marks):
        return None
    items: list[str] = []
    ends = [at for at, _ in heads[1:]]
    for (at, found), end in zip(heads, [*ends, None], strict=True):
        stop = end if end is not None else _end(lines, at, outer)
        rest = [line for line in lines[at + 1 : stop] if line.strip()]
        if any(not line[0].isspace() for line in rest):
            return None  # not of the item: a text between two of them, or behind the last one
        items.append("\n".join([found["text"].strip(), *(line.strip() for line in rest)]))
    last = _end(lines, heads[-1][0], outer)
    before, after = "\n".join(lines[: heads[0][0]]), "\n".join(lines[last:])
    task = f"{before.strip()}\n\n{after.strip()}".strip()
    return Listed(task, tuple(items), tuple(marks), _is_short(task))


def _end(lines: list[str], at: int, outer: int) -> int:
    """Return where the last item ends: at an empty line that no deeper line follows."""
    end = at + 1
    for i in range(at + 1, len(lines)):
        if lines[i].strip():
            is_deeper = _indent(lines[i]) > outer
            if i > end and not is_deeper:
                break
            end = i + 1
    return end


def _indent(line: str) -> int:
    line = line.expandtabs(4)
    return len(line) - len(line.lstrip())


def _counts_on(marks: list[str]) -> bool:
    """Whether the marks are equal bullets, or numbers or letters that count on from the first."""
    kinds = {re.sub(r"\d+", "1", mark) if mark[-1] in ".):" else mark for mark in marks}
    if marks[0] in ("-", "*", "•", "–"):
        return len(set(marks)) == 1
    digits = [re.sub(r"\D", "", mark) for mark in marks]
    if all(digits):
        return len(kinds) == 1 and [*map(int, digits)] == [
            *range(int(digits[0]), int(digits[0]) + len(marks))
        ]
    letters = [mark.strip("().") for mark in marks]
    return [ord(letter) for letter in letters] == [
        *range(ord(letters[0]), ord(letters[0]) + len(marks))
    ]


def _lines(question: str) -> Listed | None:
    """Find a list without marks: the lines behind a task that ends with a colon."""
    head, colon, rest = question.strip().partition(":\n")
    items = [line.strip() for line in rest.strip().split("\n")]
    if not colon or not all(items) or any(item.endswith(":") for item in items):
        return None
    return Listed(head.strip() + ":", tuple(items), ("",) * len(items), _is_short(head))


def _inline(question: str) -> Listed | None:
    """Find a list in the line of the task: "... for each of the following words: a, b, c"."""
    found = _INLINE.fullmatch(question.strip()) if len(question) <= _MAX_LINE else None
    if found is None:
        return None
    split = ";" if ";" in found["items"] else ","
    items = [re.sub(r"^(?:and|or) ", "", one.strip()) for one in found["items"].split(split)]
    if " and " in items[-1] and " and " not in "".join(items[:-1]):
        items = [*items[:-1], *items[-1].split(" and ", 1)]
    if not all(items) or any(len(item.split()) > 6 for item in items):
        return None
    # "$1,000", "(1, 2)", "Paris, France", "Trinidad and Tobago": a comma may be within an item.
    if split == "," and re.search(r"[\d\"'`()\[\]{}<>=]", found["items"]):
        return None
    if split == "," and any(item[0].isupper() for item in items):
        return None
    marks = tuple(f"{at}. {item}:" for at, item in enumerate(items, 1))
    return Listed(found["before"].strip() + ":", tuple(items), marks, _is_short(found["before"]))


def _is_short(task: str) -> bool:
    return bool(_SHORT.search(task))


def _is_counted(task: str, number: int) -> bool:
    """Whether a number of items that the task names is the number that there are."""
    said = re.findall(
        rf"\b(?:following|these|the)\s+(\d{{1,3}}|{'|'.join(_NUMBERS)})\s+\w+", task, re.I
    )
    sizes = {int(word) if word.isdigit() else _NUMBERS.index(word.lower()) + 3 for word in said}
    return sizes <= {number}
