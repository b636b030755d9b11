"""Tables of a terminal keep their rows whole under their head; frames of a trace are whole."""

from __future__ import annotations

import re

import pytest

from headrace.compressors import Budget, Compressor, make_counter, make_scorer
from headrace.compressors.mini.coverage import reason_against

COMPRESSOR = Compressor(make_scorer("lexical"), make_counter())
RATES = [0.3, 0.5, 0.6, 0.8]
TABLES = {
    "psql": """\
 id |  name   |       city        | age
----+---------+-------------------+-----
  1 | Ann     | New York          |  31
  2 | Bob Ray | San Francisco     |  42
  3 | Cy      | Bern              |  27
""",
    "mysql": """\
+----+---------+---------------+
| id | name    | city          |
+----+---------+---------------+
|  1 | Ann     | New York      |
|  2 | Bob Ray | San Francisco |
+----+---------+---------------+
""",
    "ps": """\
USER         PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND
root           1  0.0  0.1 168540 11500 ?        Ss   Nov30   0:04 /sbin/init splash
ann         2201  1.2  3.4 3245000 270000 ?      Sl   09:12   2:31 /usr/lib/firefox -new-window
bob         2412  0.0  0.1  23412  9800 pts/0    Ss+  09:30   0:00 -bash
""",
    "df": """\
Filesystem      Size  Used Avail Use% Mounted on
/dev/sda1        98G   45G   48G  49% /
tmpfs           7.8G  1.2M  7.8G   1% /run
/dev/sdb1       1.8T  1.1T  640G  64% /mnt/data disk
""",
    "kubectl": """\
NAME                     READY   STATUS             RESTARTS   AGE
web-7d4b9c6f5-x2x7p      1/1     Running            0          3d
worker-5c9f8d7b6-k8k2m   0/1     CrashLoopBackOff   17         2h
""",
    "free": """\
               total        used        free      shared  buff/cache   available
Mem:        16315120     6217560     1234328      512344     8863232     9234324
Swap:        2097148           0     2097148
""",
    "top": """\
  PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND
 2201 ann       20   0 3245000 270000  98000 S  12.3   3.4   2:31.12 firefox
 2412 bob       20   0   23412   9800   3400 S   0.3   0.1   0:00.41 bash
""",
    "one row": """\
NAME    READY   STATUS    RESTARTS
web     1/1     Running   0
""",
}
LISTING = """\
drwxr-xr-x  5 ann  staff   4096 Nov 30 10:12 docs
-rw-r--r--  1 ann  staff  12034 Nov 28 09:00 README.md
-rw-r--r--  1 root wheel    512 Dec  1 08:59 my notes.txt
lrwxrwxrwx  1 ann  staff     11 Nov 30 10:12 latest -> docs/v2
"""
TRACES = {
    "node": """\
TypeError: Cannot read properties of undefined (reading 'length')
    at countWheels (/app/src/mill/wheels.js:42:17)
    at Mill.turn (/app/src/mill/index.js:108:5)
    at async Promise.all (index 0)
    at async /app/src/server.js:12:3
""",
    "java": """\
java.lang.IllegalStateException: The wheel is not turning
	at org.example.mill.Wheel.turn(Wheel.java:42)
	at org.example.mill.Main.main(Main.java:12)
	... 7 more
""",
    "ruby": """\
mill.rb:12:in 'turn': the wheel is not turning (Dry)
	from mill.rb:20:in 'run'
	from mill.rb:31:in '<main>'
""",
}


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("text", TABLES.values(), ids=TABLES)
def test_a_row_is_whole_or_absent_and_has_its_head(text: str, rate: float) -> None:
    lead = "These are all of them, as they were on Monday morning when we looked:\n\n"
    for given in (text, lead + text):
        [result] = COMPRESSOR.compress([given], Budget(rate=rate))
        rows = [line for line in result.text.splitlines() if line.strip() and line not in lead]
        rows = [row for row in rows if "Monday" not in row and "looked" not in row]
        assert {row.strip() for row in rows} <= set(map(str.strip, text.splitlines()))
        assert not rows or rows[0].strip() == text.splitlines()[0].strip()


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("name", ["free", "top", "kubectl", "one row"])
def test_a_table_of_one_row_or_two_is_whole_with_a_reason(name: str, rate: float) -> None:
    [result] = COMPRESSOR.compress([TABLES[name]], Budget(rate=rate))
    assert result.text == TABLES[name]
    assert "a table of one row or two is kept whole" in (result.reason or "")


@pytest.mark.parametrize("rate", RATES)
def test_a_line_of_ls_is_whole_or_absent(rate: float) -> None:
    [result] = COMPRESSOR.compress([LISTING], Budget(rate=rate))
    assert set(result.text.splitlines()) <= set(LISTING.splitlines())
    assert 0 < result.tokens_out <= rate * result.tokens_in


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("text", TRACES.values(), ids=TRACES)
def test_a_frame_of_a_trace_is_whole_or_absent(text: str, rate: float) -> None:
    [result] = COMPRESSOR.compress([text], Budget(rate=rate))
    frames = [line.strip() for line in text.splitlines()[1:]]
    for line in result.text.splitlines():
        if re.match(r"\s*(?:at|from|\.\.\.)\b", line):
            assert line.strip() in frames


TRACEBACK = """\
Traceback (most recent call last):
  File "/srv/app/pool.py", line 88, in acquire
    conn = self._connect(host, timeout=2.5)
  File "/srv/app/pool.py", line 41, in _connect
    raise ConnectionResetError(104, "Connection reset by peer")
    ~~~~~~~~~~~~~~~~~~~~~~~~~~^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
ConnectionResetError: [Errno 104] Connection reset by peer
"""


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("lead", ["", "2026-12-01 10:00:02 ERROR the wheel does not turn\n"])
def test_a_frame_of_python_keeps_its_code_and_the_exception_is_whole(
    rate: float, lead: str
) -> None:
    first, *frames, last = re.split(r"\n(?=  File|\w)", TRACEBACK.strip())
    [result] = COMPRESSOR.compress([lead + TRACEBACK + lead], Budget(rate=rate))
    rest = result.text
    for part in (first, *frames, last):
        rest = rest.replace(part, "")
    assert not re.search(r"Traceback|File|conn|raise|\^|Errno|peer", rest)


@pytest.mark.parametrize(
    "text",
    [
        "At noon we met (all of us). We went on at three, and at four we were there.",
        "NASA, ESA and JAXA met  in May. They spoke of it for a long time in all of the rooms.",
        "I was there\n   at the mill for a day\n   at most, and nobody came to see how it goes.",
    ],
)
def test_prose_is_no_table(text: str) -> None:
    [result] = COMPRESSOR.compress([text], Budget(rate=0.5))
    assert 0 < result.tokens_out <= 0.5 * result.tokens_in


def test_english_with_many_numbers_is_not_said_to_be_another_kind_of_text() -> None:
    text = (
        "In 2021 the mill sold 12,500 sacks at $35.40 each, up 14.2 % from 10,945 in 2020, and in "
        "Q4 it sold 4,120. Revenue rose to $442,500 from $361,185; costs were "
        "$210,000 and $198,000."
    )
    assert re.fullmatch(
        r"\d\d% of the text are digits and signs, as in code, logs and tables",
        reason_against(text) or "",
    )


def test_what_pprint_breaks_into_several_strings_is_one_value() -> None:
    text = (
        "[{'id': 0,\n  'note': 'The wheel of the mill is old, and nobody knows who '\n"
        "          'made it or when it was made.',\n  'tags': ['a', 'b']},\n"
        " {'id': 1, 'note': 'new', 'tags': []}]\n"
    )
    [result] = COMPRESSOR.compress([text], Budget(rate=0.5))
    assert result.text == text
    assert "records keep their keys and values" in (result.reason or "")
