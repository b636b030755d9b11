r"""llama.cpp's grammar language (GBNF) for choices and for the common subset of regexes.

GBNF is described in llama.cpp's grammars/README.md. The subset: literals, classes, groups,
alternation, repeats, anchors at the ends. Everything else is refused, never approximated:
``\d``, ``\w`` and ``\s`` become their ASCII members, which the pattern accepts too.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...middleware.errors import UnsupportedConstraint

MAX_REPEATS = 1000  # llama.cpp refuses more than 2,000
_MAX_DEPTH = 50
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\n\r\u000B\u000C"}
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "f": "\f", "v": "\v"}
_HEX_DIGITS = {"x": 2, "u": 4}


def from_choices(options: Sequence[str]) -> str:
    r"""Return the grammar of one of these texts.

    >>> from_choices(["yes", "no"])
    'root ::= "yes" | "no"'
    """
    return "root ::= " + " | ".join(f'"{escaped(option)}"' for option in options)


def from_regex(pattern: str) -> str:
    r"""Return the grammar of the texts that match the pattern as a whole.

    Raises UnsupportedConstraint for what is outside the subset, with its place.

    >>> from_regex("^[a-c]+(,x)?$")
    'root ::= [a-c]+ ("\\u002C" "x")?'
    """
    return "root ::= " + _Reader(pattern).read()


class _Reader:
    """Recursive descent. Each part returns its GBNF and whether it matches the empty text."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._depth = 0

    def read(self) -> str:
        text, _ = self._alternatives()
        if self._at < len(self._pattern):
            raise self._refused("an unbalanced parenthesis")
        return text

    def _alternatives(self) -> tuple[str, bool]:
        branches = [self._sequence()]
        while self._take("|"):
            branches.append(self._sequence())
        return " | ".join(text for text, _ in branches), any(empty for _, empty in branches)

    def _sequence(self) -> tuple[str, bool]:
        parts: list[str] = []
        is_empty = True
        if self._depth == 0:
            self._take("^")
        while self._at < len(self._pattern) and self._peek() not in "|)":
            if (
                self._peek() == "$"
                and self._depth == 0
                and self._pattern[self._at + 1 :][:1]
                in (
                    "",
                    "|",
                )
            ):
                self._at += 1
                break
            atom, can_be_empty = self._atom()
            bounds = self._repeat()
            if bounds is not None:
                if can_be_empty:
                    raise self._refused("a repeat of what can be empty")
                can_be_empty = bounds[1]
                atom += bounds[0]
            parts.append(atom)
            is_empty = is_empty and can_be_empty
        return " ".join(parts) or '""', is_empty

    def _atom(self) -> tuple[str, bool]:
        char = self._next()
        if char == "(":
            return self._group()
        if char == "[":
            return self._class(), False
        if char == ".":
            return r"[^\n]", False
        if char == "\\":
            return self._escape(), False
        if char in "^$*+?{":
            raise self._refused(f"{char!r} here")
        return f'"{escaped(char)}"', False

    def _group(self) -> tuple[str, bool]:
        if self._take("?"):
            if self._take("P<"):
                name, _, _ = self._pattern[self._at :].partition(">")
                self._at += len(name) + 1
            elif not self._take(":"):
                raise self._refused("lookaround, a flag or a special group")
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._refused("deeper nesting")
        text, can_be_empty = self._alternatives()
        self._depth -= 1
        if not self._take(")"):
            raise self._refused("an unclosed group")
        return f"({text})", can_be_empty

    def _repeat(self) -> tuple[str, bool] | None:
        """Return the repeat's GBNF and whether it allows none; a lazy one allows the same texts."""
        char = self._peek()
        if char in ("*", "+", "?"):
            self._at += 1
            text, none = char, char != "+"
        elif char == "{":
            body, end, _ = self._pattern[self._at + 1 :].partition("}")
            low, comma, high = body.partition(",")
            if not end or not low.isdecimal() or (high and not high.isdecimal()):
                raise self._refused(f"{{{body}}} as a repeat")
            if int(low) > MAX_REPEATS or int(high or 0) > MAX_REPEATS:
                raise self._refused(f"more than {MAX_REPEATS} repeats")
            self._at += len(body) + 2
            text, none = f"{{{low}{comma}{high}}}", int(low) == 0
        else:
            return None
        self._take("?")
        if self._peek() in ("*", "+", "{"):
            raise self._refused("a possessive or doubled repeat")
        return text, none

    def _escape(self) -> str:
        char = self._next()
        if char in _CLASSES:
            return f"[{_CLASSES[char]}]"
        if char.lower() in _CLASSES:
            return f"[^{_CLASSES[char.lower()]}]"
        return f'"{escaped(self._escaped_char(char))}"'

    def _escaped_char(self, char: str) -> str:
        if char in _CONTROLS:
            return _CONTROLS[char]
        if digits := _HEX_DIGITS.get(char):
            if self._take("{"):  # as Rust writes it
                code, _, _ = self._pattern[self._at :].partition("}")
                self._at += len(code) + 1
            else:
                code = self._pattern[self._at : self._at + digits]
                self._at += digits
            try:
                return chr(int(code, 16))
            except (ValueError, OverflowError):
                raise self._refused(f"\\{char}{code}") from None
        if char.isalnum():
            raise self._refused(f"\\{char}")
        return char

    def _class(self) -> str:
        parts = ["^" if self._take("^") else ""]
        is_first = True
        while is_first or self._peek() != "]":
            is_first = False
            char = self._next()
            if char == "[" and self._peek() == ":":
                raise self._refused("a POSIX class")
            if char == "\\":
                char = self._next()
                if char in _CLASSES:
                    parts.append(_CLASSES[char])
                    continue
                char = self._escaped_char(char)
            parts.append(escaped(char))
            if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                end = self._next()
                if end == "\\":
                    end = self._escaped_char(self._next())
                if end < char:
                    raise self._refused(f"the range {char}-{end}")
                parts.append("-" + escaped(end))
        self._at += 1
        return f"[{''.join(parts)}]"

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self) -> str:
        char = self._peek()
        if not char:
            raise self._refused("an end here")
        self._at += 1
        return char

    def _take(self, text: str) -> bool:
        if not self._pattern.startswith(text, self._at):
            return False
        self._at += len(text)
        return True

    def _refused(self, what: str) -> UnsupportedConstraint:
        return UnsupportedConstraint(
            f"GBNF cannot say {what} (character {self._at} of {self._pattern!r:.80})"
        )


def escaped(text: str) -> str:
    r"""Return the text for a GBNF literal or class: every sign that means something as a code.

    Of four digits: of ``\x`` llama.cpp reads two, xgrammar as many as there are.
    """
    return "".join(_code(char) for char in text)


def _code(char: str) -> str:
    if char == " " or char == "_" or (char.isascii() and char.isalnum()):
        return char
    code = ord(char)
    return f"\\u{code:04X}" if code < 0x10000 else f"\\U{code:08X}"
