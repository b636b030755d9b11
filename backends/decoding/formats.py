"""String formats as patterns, exact where a pattern can be (RFC 3339, 3986, 4291, 5321, 6901).

Patterns are for the whole text, in the dialect that Python's ``regex`` and Rust share.
"""

from __future__ import annotations

import re

_DAY = (
    "(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)"
    "|02-(?:0[1-9]|1[0-9]|2[0-8]))"
)
# Every fourth year; of the hundreds every fourth.
_LEAP_YEAR = "(?:[0-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
_DATE = f"(?:[0-9]{{4}}-{_DAY}|{_LEAP_YEAR}-02-29)"
_HOURS = "(?:[01][0-9]|2[0-3])"


_FRACTION = r"(?:\.[0-9]+)?"
_USUAL = f"{_HOURS}:[0-5][0-9]:[0-5][0-9]{_FRACTION}(?:[zZ]|[+-]{_HOURS}:[0-5][0-9])"


def _leap_seconds(minutes: int) -> str:
    """Return a pattern of the times that are 23:59:60 in UTC, at offsets of so many minutes."""
    offsets: dict[str, list[str]] = {"23:59": ["[zZ]"]}
    for offset in range(0, 24 * 60, minutes):
        for sign, shift in (("[+]", offset), ("-", -offset)):
            local = (24 * 60 - 1 + shift) % (24 * 60)
            clock = f"{local // 60:02}:{local % 60:02}"
            offsets.setdefault(clock, []).append(f"{sign}{offset // 60:02}:{offset % 60:02}")
    return "|".join(f"{at}:60{_FRACTION}(?:{'|'.join(zones)})" for at, zones in offsets.items())


# An automaton grows with each offset: it writes leap seconds at whole and half hours only.
_TIME = f"(?:{_USUAL}|{_leap_seconds(30)})"

_BYTE = "(?:[0-9]|[1-9][0-9]|1[0-9][0-9]|2[0-4][0-9]|25[0-5])"
_IPV4 = rf"(?:{_BYTE}\.){{3}}{_BYTE}"
_H16 = "[0-9a-fA-F]{1,4}"
_LS32 = f"(?:{_H16}:{_H16}|{_IPV4})"
_IPV6 = (
    f"(?:(?:{_H16}:){{6}}{_LS32}|::(?:{_H16}:){{5}}{_LS32}"
    f"|(?:{_H16})?::(?:{_H16}:){{4}}{_LS32}"
    f"|(?:(?:{_H16}:){{0,1}}{_H16})?::(?:{_H16}:){{3}}{_LS32}"
    f"|(?:(?:{_H16}:){{0,2}}{_H16})?::(?:{_H16}:){{2}}{_LS32}"
    f"|(?:(?:{_H16}:){{0,3}}{_H16})?::{_H16}:{_LS32}"
    f"|(?:(?:{_H16}:){{0,4}}{_H16})?::{_LS32}"
    f"|(?:(?:{_H16}:){{0,5}}{_H16})?::{_H16}"
    f"|(?:(?:{_H16}:){{0,6}}{_H16})?::)"
)
_PERCENT = "%[0-9a-fA-F]{2}"
_UNRESERVED = r"A-Za-z0-9\x2D._\x7E"
_SUB = r"!$\x26'()*+,;="
_PCHAR = f"(?:[{_UNRESERVED}{_SUB}:@]|{_PERCENT})"
_HOST = (
    rf"(?:\[(?:{_IPV6}|v[0-9a-fA-F]+\.[{_UNRESERVED}{_SUB}:]+)\]"
    f"|(?:[{_UNRESERVED}{_SUB}]|{_PERCENT})*)"
)
_AUTHORITY = f"(?:(?:[{_UNRESERVED}{_SUB}:]|{_PERCENT})*@)?{_HOST}(?::[0-9]*)?"
_PATHS = f"(?://{_AUTHORITY}(?:/{_PCHAR}*)*|/(?:{_PCHAR}+(?:/{_PCHAR}*)*)?"
_TAIL = rf"(?:\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?"
_NO_COLON = f"(?:[{_UNRESERVED}{_SUB}@]|{_PERCENT})+"
_SCHEME = r"[A-Za-z][A-Za-z0-9+\x2D.]*"
_URI = f"{_SCHEME}:{_PATHS}|{_PCHAR}+(?:/{_PCHAR}*)*|){_TAIL}"
_RELATIVE = f"{_PATHS}|{_NO_COLON}(?:/{_PCHAR}*)*|){_TAIL}"

_ATOM = r"[A-Za-z0-9!#$%\x26'*+\x2D/=?\x5E_\x60{|}\x7E]+"
_QUOTED = r'"(?:[\x20\x21\x23-\x5B\x5D-\x7E]|\\[\x20-\x7E])*"'
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9\x2D]{0,61}[A-Za-z0-9])?"
_DOMAIN = rf"{_LABEL}(?:\.{_LABEL})*"
_EMAIL = rf"(?:{_ATOM}(?:\.{_ATOM})*|{_QUOTED})@(?:{_DOMAIN}|\[(?:{_IPV4}|IPv6:{_IPV6})\])"
_POINTER = "(?:/(?:[^/~]|~[01])*)*"
_HEX = "[0-9a-fA-F]"
_TIME_PART = "T(?:[0-9]+H(?:[0-9]+M(?:[0-9]+S)?)?|[0-9]+M(?:[0-9]+S)?|[0-9]+S)"
_DATE_PART = "(?:[0-9]+Y(?:[0-9]+M(?:[0-9]+D)?)?|[0-9]+M(?:[0-9]+D)?|[0-9]+D)"

FORMATS: dict[str, str] = {
    "date": _DATE,
    "time": _TIME,
    "date-time": f"{_DATE}[tT]{_TIME}",
    "duration": f"P(?:{_DATE_PART}(?:{_TIME_PART})?|{_TIME_PART}|[0-9]+W)",
    "ipv4": _IPV4,
    "ipv6": _IPV6,
    "uuid": f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}",
    "uri": _URI,
    "uri-reference": f"(?:{_URI}|{_RELATIVE})",
    "email": _EMAIL,
    "json-pointer": _POINTER,
    "relative-json-pointer": f"(?:0|[1-9][0-9]*)(?:#|{_POINTER})",
    "hostname": _DOMAIN,
}
# Its pattern lets through what a look at the whole text then refuses (lengths, punycode).
NOT_EXACT = frozenset({"hostname"})


def without_leap_second(text: str) -> str:
    """Return a time or date-time with :59 for :60 where the second before midnight in UTC is one.

    Any offset is taken, where the patterns only know whole and half hours.

    >>> without_leap_second("05:44:60+05:45")
    '05:44:59+05:45'
    """
    found = re.search(
        rf"({_HOURS}):([0-5][0-9]):60({_FRACTION})([zZ]|([+-])([0-9]{{2}}):([0-9]{{2}}))\Z", text
    )
    if found is None:
        return text
    offset = int(found[6] or 0) * 60 + int(found[7] or 0)
    minute = int(found[1]) * 60 + int(found[2]) + (offset if found[5] == "-" else -offset)
    if minute % (24 * 60) != 24 * 60 - 1:
        return text
    return f"{text[: found.start()]}{found[1]}:{found[2]}:59{found[3]}{found[4]}"
