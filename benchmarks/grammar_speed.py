"""What reading GBNF sign by sign costs, beside llguidance's own conversion with terminals.

    python benchmarks/grammar_speed.py [--rounds 5]

A mask before each token of a JSON text and of a sum, SmolLM2's tokenizer, one thread, milliseconds.
"Takes it": whether the automaton takes a text that is a sentence of the grammar.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any, cast

from llguidance.gbnf_to_lark import gbnf_to_lark

from headrace import Constraint
from headrace.backends.decoding.automaton import Compiler
from headrace.middleware.errors import UnsupportedConstraint
from headrace.middleware.gbnf import lark_of
from headrace.middleware.models import resolve

JSON = r"""root ::= value
value ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws (string ":" ws value ("," ws string ":" ws value)*)? "}" ws
array ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)? ws
ws ::= [ \t\n]*
"""
SUMS = r"""root ::= (expr "=" ws term "\n")+
expr ::= term ([-+*/] term)*
term ::= ident | num | "(" ws expr ")" ws
ident ::= [a-z] [a-z0-9_]* ws
num ::= [0-9]+ ws
ws ::= [ \t\n]*
"""
CASES = {
    "JSON": (JSON, '{"name": "Ada Lovelace", "born": 1815, "in": ["London", "1.5e3"], "ok": true}'),
    "sums": (SUMS, "(abc1*22+(3-x))=3\nb=7\n"),
}


def measure(compiler: Compiler, lark: str, text: str, rounds: int) -> tuple[list[float], bool]:
    """Return the milliseconds of each mask, and whether the text was taken."""
    constraint = Constraint("grammar", lark)
    times: list[float] = []
    is_taken = False
    for _ in range(rounds):
        matcher = compiler.matcher(constraint)
        try:
            for token in compiler.tokens_of(text.encode()):
                started = time.process_time()
                matcher.mask()
                times.append(1000 * (time.process_time() - started))
                matcher.advance(token)
            is_taken = matcher.is_complete
        except UnsupportedConstraint:
            is_taken = False
    return times, is_taken


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    import transformers

    folder = resolve("smollm2", kind="decoder")
    tokenizer: Any = cast("Any", transformers).AutoTokenizer.from_pretrained(folder)
    compiler = Compiler(tokenizer, len(tokenizer), [tokenizer.eos_token_id])
    print("| grammar | read | mask mean ms | worst | takes it |")
    print("|---|---|---|---|---|")
    for name, (gbnf, text) in CASES.items():
        for how, convert in (("sign by sign", lark_of), ("with terminals", gbnf_to_lark)):
            times, is_taken = measure(compiler, convert(gbnf), text, options.rounds)
            print(
                f"| {name} | {how} | {statistics.fmean(times):.2f} | {max(times):.2f} "
                f"| {'yes' if is_taken else 'NO'} |"
            )


if __name__ == "__main__":
    main()
