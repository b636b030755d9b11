"""Where a text that was cut may end, so that another can stand behind it."""

from __future__ import annotations

import re

from .fences import open_fence

NEAR = 32  # tokens before a cut from which on only whole sentences are passed on

# A mark, what closes behind it, and white space or a wide character (which needs none) after it.
_END = re.compile(r"(?:[.!?…]+[)\]\"'”’»*_]*(?=\s|\Z)|[。！？][)\]\"'”’»」』*_]*)")
_MARKED = re.compile(r"[ \t]*(?:[-*+•][ \t]|\(?\w{1,3}[.):][ \t]|[|>#])")
_NO_END = re.compile(
    r"(?:^|[\s(\[\"'“‘*_])(?:\d{1,4}|[^\W\d_]|(?:[^\W\d_]\.)+[^\W\d_]|e\.g|i\.e|etc|vs|cf|ca|approx"
    r"|Dr|Mr|Mrs|Ms|Prof|St|No|Nr|Fig|bzw|usw)\Z"
)
_LEADS_ON = re.compile(r"[ \t]*(?:#{1,6}(?:[ \t].*)?|.*[:：][*_]*|[|:\- \t]+|[-*+•]|\W*\d*\W*)\Z")


def whole_length(text: str) -> int:
    r"""Return how many characters of a text are whole: sentences, lines of a list, lines of code.

    A line that leads on to what is cut off (a heading, "as follows:") does not count.

    >>> text = "It pays. It is ready to"
    >>> text[: whole_length(text)], whole_length("ready to"), whole_length("- one\n- tw")
    ('It pays.', 0, 5)
    """
    if open_fence(text):
        return max(text.rfind("\n"), 0)
    end = max((at for at in _ends(text)), default=0)
    while end:
        start = text.rfind("\n", 0, end) + 1
        if not _LEADS_ON.match(text[start:end]):
            break
        end = len(text[:start].rstrip())
    return end


def ended(text: str, num_sent: int) -> str:
    r"""Return a text that was cut as it may end; its first ``num_sent`` characters stay.

    It ends behind its last whole sentence where that can be done, else in an ellipsis.

    >>> ended("It pays. It is rea", 0), ended("It pays. It is rea", 12)
    ('It pays.', 'It pays. It is…')
    """
    whole = whole_length(text)
    if whole and whole >= len(text[:num_sent].rstrip()):
        return text[: max(whole, num_sent)].rstrip()
    if open_fence(text):
        return text
    torn = re.search(r"[^\s。！？]*\Z", text[num_sent:])
    words = text if torn is None else text[: num_sent + torn.start()]
    if not words.strip() or (num_sent and not words[num_sent:].strip()):
        words = text if not num_sent else text[:num_sent]
    words = words.rstrip()
    return words if words.endswith("…") else f"{words}…"


def _ends(text: str) -> list[int]:
    """Return where a sentence ends, or a line of a list or table with another one behind it."""
    ends = [found.end() for found in _END.finditer(text) if not _is_inside(text, found)]
    for found in re.finditer(r"[ \t]*\n", text):
        start = text.rfind("\n", 0, found.start()) + 1
        is_block = _MARKED.match(text[start:]) or text[found.end() :].lstrip(" \t").startswith("\n")
        if is_block or _MARKED.match(text[found.end() :]):
            ends.append(found.start())
    return ends


def _is_inside(text: str, found: re.Match[str]) -> bool:
    """Whether a full stop belongs to a number, a name or a short form, and not to a sentence."""
    if not found[0].startswith(".") or found[0].startswith(".."):
        return False
    before = _NO_END.search(text[: found.start()])
    if before is None:
        return False
    word = re.sub(r"\W", "", before[0])
    starts_line = not text[text.rfind("\n", 0, found.start()) + 1 : found.start()].strip(
        " *_(" + word
    )
    is_last = found.end() == len(text)
    follows = re.match(r"\s+[\"“(*_]*[^\W\d_]", text[found.end() :])
    is_new = follows is not None and follows[0][-1].isupper()
    return starts_line or is_last or not (word.isdigit() and is_new)
