r"""JSON Schema's regular expressions (ECMA-262) for engines with another dialect.

``searched`` gives a pattern for Python's ``regex`` (searching, as JSON Schema asks), ``whole`` one
for a Rust automaton, which must match the whole text. Both mean the same as in ECMAScript: ``\d``
and ``\w`` are ASCII, ``.`` leaves out all four line ends, ``$`` is the end and not a last line.
"""

from __future__ import annotations

import re

MAX_PATTERN = 20_000  # characters
MAX_REPEATS = 20_000  # what the counts of nested repeats may multiply to

_SPACE = r"\x09-\x0D\x20\xA0\u1680\u2000-\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF"
_CLASSES = {"d": "0-9", "w": "A-Za-z0-9_", "s": _SPACE}
_ANY = r"[\x00-\U0010FFFF]"
_CONTROL = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}
_COUNT = re.compile(r"\{(\d+)(,(\d*))?\}")
_TOKEN = re.compile(
    r"\\u\{[0-9A-Fa-f]+\}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\x\{[0-9A-Fa-f]+\}"
    r"|\\U[0-9A-Fa-f]{8}|\\c[A-Za-z]|\\[pP]\{[^}]*\}|\\k<\w+>|\\.|.",
    re.DOTALL,
)
_GROUP = re.compile(r"\(\?(?:[:=!]|<[=!]|P?<\w+>|[a-zA-Z-]+[:)])")


class Unsupported(ValueError):
    """The pattern asks for something that no automaton has; the text names it."""


class TooLarge(Unsupported):
    """The pattern is long, or its counts of repeats multiply to what would take gigabytes."""


def searched(pattern: str) -> str:
    """Return the pattern for ``regex.search(..., flags=regex.VERSION1)``."""
    return "".join(_python(token) for token in _tokens(pattern))


def whole(pattern: str) -> str:
    r"""Return the pattern as Rust reads it, to be matched against the whole text.

    Raises Unsupported for lookaround, backreferences, word boundaries, an anchor in the middle,
    and for repeats whose counts multiply past ``MAX_REPEATS``.

    >>> whole("^a\\d|b$")
    '(?:a[0-9][\\x00-\\U0010FFFF]*|[\\x00-\\U0010FFFF]*b)'
    """
    check_size(pattern)
    tokens = _tokens(pattern)
    flags = ""
    if tokens and re.fullmatch(r"\(\?[a-z]+\)", tokens[0]):
        flags, tokens = tokens[0], tokens[1:]
        if "m" in flags or "x" in flags:
            raise Unsupported(f"the flag {flags}")
    return flags + _anchored(tokens)


def check_size(pattern: str) -> None:
    """Refuse patterns that would make an automaton explode. Raises TooLarge."""
    if len(pattern) > MAX_PATTERN:
        raise TooLarge(f"{len(pattern)} characters; keep it <= {MAX_PATTERN}")
    if (most := repeats(pattern)) > MAX_REPEATS:
        raise TooLarge(f"counts of repeats that multiply to {most}; keep it <= {MAX_REPEATS}")


def _anchored(tokens: list[str]) -> str:
    parts: list[str] = []
    for part in _alternatives(tokens):
        inner = _only_group(part)
        if inner is not None:
            parts.append(_anchored(inner))
            continue
        starts, ends = part[:1] == ["^"], part[-1:] == ["$"]
        body = part[1 if starts else 0 : len(part) - 1 if ends else len(part)]
        text = "".join(_rust(token) for token in body)
        parts.append(f"{'' if starts else _ANY + '*'}{text}{'' if ends else _ANY + '*'}")
    return f"(?:{'|'.join(parts)})"


def _alternatives(tokens: list[str]) -> list[list[str]]:
    """Split at the bars of the top level."""
    found: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += _depth(token)
        if token == "|" and depth == 0:
            found.append([])
        else:
            found[-1].append(token)
    return found


def _only_group(tokens: list[str]) -> list[str] | None:
    """Return what is inside one pair of parentheses around everything, if it holds anchors."""
    if not tokens or _depth(tokens[0]) != 1 or tokens[-1] != ")":
        return None
    if tokens[0] != "(" and not re.fullmatch(r"\(\?(:|P?<\w+>)", tokens[0]):
        return None
    depth = 0
    for at, token in enumerate(tokens):
        depth += _depth(token)
        if depth == 0 and at < len(tokens) - 1:
            return None
    return tokens[1:-1] if {"^", "$"} & set(tokens) else None


def _depth(token: str) -> int:
    if token == ")":
        return -1
    return 1 if token.startswith("(") and not re.fullmatch(r"\(\?[a-zA-Z-]+\)", token) else 0


def _tokens(pattern: str) -> list[str]:
    """Cut into atoms: a class in brackets, a group's opening and a count are one each."""
    tokens: list[str] = []
    at = 0
    while at < len(pattern):
        if pattern[at] == "[":
            token, at = _class(pattern, at)
        elif pattern[at] == "(" and (group := _GROUP.match(pattern, at)):
            token, at = group[0], group.end()
        elif pattern[at] == "{" and (count := _COUNT.match(pattern, at)):
            token, at = count[0], count.end()
        else:
            found = _TOKEN.match(pattern, at)
            assert found is not None
            token, at = found[0], found.end()
            if token in "{}]":
                token = "\\" + token
            elif token in (r"\A", r"\Z", r"\z"):
                token = "^" if token == r"\A" else "$"
        tokens.append(token)
    return tokens


def _class(pattern: str, at: int) -> tuple[str, int]:
    """Rewrite a class in brackets so that both dialects read it alike."""
    start = at
    at += 1
    is_negated = pattern[at : at + 1] == "^"
    at += is_negated
    inner = ""
    can_range = False  # whether a hyphen now would be a range
    while at < len(pattern) and pattern[at] != "]":
        posix = re.compile(r"\[:\w+:\]").match(pattern, at)
        found = _TOKEN.match(pattern, at)
        assert found is not None
        token = posix[0] if posix else found[0]
        if len(token) > 1 and token[1] in "dws" and token[0] == "\\":
            inner += _CLASSES[token[1]]
        elif len(token) == 2 and token[1] in "DWS" and token[0] == "\\":
            inner += f"[^{_CLASSES[token[1].lower()]}]"
        elif posix or token[:2] in (r"\p", r"\P"):
            inner += token
        elif token == "-":
            is_range = can_range and not _is_class(pattern[at + 1 : at + 3])
            inner += "-" if is_range else r"\-"
            can_range = False
            at += 1
            continue
        else:
            inner += r"\x08" if token == r"\b" else _literal(_code(token))
        can_range = not (posix or _is_class(token)) and not inner.endswith(r"\-")
        at = posix.end() if posix else found.end()
    if at >= len(pattern):
        raise Unsupported(f"a class without its end: {pattern[start : start + 20]!r}")
    if not inner:
        return (_ANY if is_negated else r"[^\x00-\U0010FFFF]"), at + 1
    return f"[{'^' if is_negated else ''}{inner}]", at + 1


def _is_class(token: str) -> bool:
    """Whether a range cannot end here: the end of the brackets, or a set of characters."""
    return token[:1] == "]" or (token[:1] == "\\" and token[1:2] in "dwsDWSpP")


def _code(token: str) -> int | None:
    """Return the code point that a token stands for, None when it is no single character."""
    if not token.startswith("\\") or len(token) == 1:
        return ord(token) if len(token) == 1 else None
    kind = token[1]
    if len(token) > 2 and kind in "uxU":
        return int(token[2:].strip("{}"), 16)
    if kind == "c" and len(token) == 3:
        return ord(token[2].upper()) - 64
    if len(token) == 2:
        return _CONTROL.get(kind, ord(kind))
    return None


def _literal(code: int | None) -> str:
    """Write a character so that it means itself in Python and in Rust, inside or outside [...]."""
    if code is None:
        raise Unsupported("an escape that stands for no character")
    if 0xD800 <= code <= 0xDFFF:
        raise Unsupported(rf"half a surrogate pair \u{code:04X}; write \u{{...}}")
    if code > 0x10FFFF:
        raise Unsupported(f"the code point {code:X}")
    text = chr(code)
    if text.isascii():
        return text if text.isalnum() else rf"\x{code:02X}"
    return rf"\U{code:08X}"


def _rust(token: str) -> str:
    if token in ("^", "$"):
        raise Unsupported(f"the anchor {token} in the middle")
    if re.match(r"\(\?(<?[=!])", token):
        raise Unsupported("look-around")
    if token in (r"\b", r"\B"):
        raise Unsupported("look-around (a word boundary)")
    if token.startswith(r"\k") or re.fullmatch(r"\\[1-9]", token):
        raise Unsupported("a backreference")
    return _both(token)


def _python(token: str) -> str:
    if token == "$":
        return r"\Z"
    if token == "^":
        return r"\A"
    if token in (r"\b", r"\B") or re.fullmatch(r"\\[1-9]", token):
        return token
    if token.startswith(r"\k"):
        return f"(?P={token[3:-1]})"
    return _both(token)


def _both(token: str) -> str:
    if token == ".":
        return r"[^\n\r\u2028\u2029]"
    if token.startswith(("[", "(")) or token in (")", "|", "*", "+", "?") or _COUNT.match(token):
        return re.sub(r"^\(\?<(?=\w)", "(?P<", token)
    if token[:2] in (r"\p", r"\P") and len(token) > 2:
        return token
    if len(token) == 2 and token[0] == "\\" and token[1] in "dws":
        return f"[{_CLASSES[token[1]]}]"
    if len(token) == 2 and token[0] == "\\" and token[1] in "DWS":
        return f"[^{_CLASSES[token[1].lower()]}]"
    return _literal(_code(token))


def repeats(pattern: str) -> int:
    """Return the largest product of counts along one nesting, summed over what is side by side."""
    stack: list[list[int]] = [[]]
    for token in _tokens(pattern):
        count = _COUNT.match(token)
        if _depth(token) == 1:
            stack.append([])
        elif token == ")" and len(stack) > 1:
            inner = stack.pop()
            stack[-1].append(max(1, sum(size for size in inner if size > 1)))
        elif count and stack[-1]:
            most = max(int(count[1]), int(count[3] or 0))
            stack[-1][-1] *= max(1, most)
        else:
            stack[-1].append(1)
    return max(1, sum(size for size in stack[0] if size > 1))


def nests_repeats(pattern: str) -> bool:
    """Whether something that repeats is repeated: a backtracking search may take for ever.

    >>> nests_repeats("^(a+)+$"), nests_repeats("^x-[a-z]+$")
    (True, False)
    """
    stack = [False]  # for each open group: whether something in it repeats
    tokens = _tokens(pattern)
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        if _depth(token) == 1:
            stack.append(False)
        elif token == ")" and len(stack) > 1:
            inner = stack.pop()
            is_repeated = following in ("*", "+") or _COUNT.match(following) is not None
            if inner and is_repeated:
                return True
            stack[-1] |= inner
        elif token in ("*", "+") or _COUNT.match(token):
            stack[-1] = True
    return False
