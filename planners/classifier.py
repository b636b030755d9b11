"""Does a question call for a list of parts that can be written separately? A linear classifier.

Logistic regression on hashed words and pairs of words (feature hashing, Weinberger et al., arXiv
0902.2206) and a few patterns; a fraction of a millisecond, nothing but the standard library. The
labels are ``data/questions.tsv``, the weights ``data/router.json``; ``training.py`` makes one of
the other, always the same.
"""

from __future__ import annotations

import base64
import json
import math
import re
import zlib
from array import array
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

SIZE = 4096
_WORD = re.compile(r"\d+|[^\W\d_]+(?:['’][^\W\d_]+)?")
_CJK = re.compile(r"[\u3400-\u9fff]")

# Patterns of the form of a question; what it is about is for the words.
PATTERNS: tuple[tuple[str, str], ...] = (
    ("plural what", r"^(?:\W*\w+\W+){0,2}(?:what|which) (?:are|were|\w+s\b)"),
    ("singular what", r"^what (?:is|was|does|did)\b"),
    ("fact", r"^(?:who|when|where|whose|is|are|was|do|does|did|can|should)\b"),
    ("how much", r"\bhow (?:many|much|old|far|long|tall|big|often|fast|hot)\b"),
    ("ways", r"\bhow (?:can|could|do|should|might|would) "
     r"(?:i|we|you|one|people|an?|the|someone)\b"),
    ("process", r"\bhow (?:does|do|is|are|did|was|were) (?:a|an|the)? ?\w+ \w+\?*$"),
    (
        "kinds",
        r"\b(?:advantages?|disadvantages?|benefits?|pros and cons|drawbacks|reasons|causes|effects"
        r"|impacts?|consequences|implications|factors|ways|methods|strategies|techniques|tips|ideas"
        r"|examples|types|kinds|features|characteristics|aspects|principles|elements|components"
        r"|differences|similarities|challenges|risks|symptoms|signs|skills|uses|options"
        r"|alternatives|approaches|trends|roles|qualities|mistakes|arguments|recommendations"
        r"|measures|criteria|steps|stages|functions|suggestions|problems|solutions|theories)\b",
    ),
    ("what if", r"\bwhat (?:would|might|could)\b.*\bif\b|^what (?:if|would happen)"
     r"|^(?:if|suppose)"),
    ("list of", r"\b(?:list|compare|outline|overview|discuss|name (?:some|the)|suggest|advise)\b"),
    ("number of", r"\b(?:two|three|four|five|six|seven|ten|some|several|various|different|main)\b"),
    ("write", r"\b(?:write|compose|draft|create|rewrite|translate|summari[sz]e|correct)\b"),
    ("role", r"\b(?:imagine you|pretend|act as|you are an?|let'?s)\b"),
    ("maths", r"\d\s*[-+*/=^]\s*\d|\b(?:solve|calculate|compute|prove|estimate)\b|\d.*\d.*\d"),
    ("code", r"\b(?:python|javascript|java|sql|code|function|program|html|script|algorithm)\b"),
    ("short", r"\b(?:briefly|one word|one sentence|yes or no|in short)\b"),
    ("given", r"\b(?:the (?:text|passage|following|above)|this (?:sentence|text|poem))\b|:\s*\S"),
    ("story", r"\b(?:story|poem|song|letter|e-?mail|essay|speech|recipe|step[- ]by[- ]step)\b"),
    ("question", r"\?\s*$"),
    ("lines", r"\n"),
    ("few words", r"^\W*(?:\w+\W+){1,4}$"),
    ("many words", r"^\W*(?:\w+\W+){40,}"),
    ("many kinds", r"哪些|优缺点|优点|方法|好处|welche|gründe|vorteile|unterschiede|avantages"
     r"|causes|comment peut|cuáles|ventajas|quali\b|vantaggi"),
)  # fmt: skip
_COMPILED = tuple(re.compile(pattern, re.I | re.S) for _, pattern in PATTERNS)
NUM_FEATURES = SIZE + len(PATTERNS)


def features(question: str) -> dict[int, float]:
    """Return the values of the features that are not 0, by index."""
    text = _CJK.sub(r" \g<0> ", question[:2000])
    words = ["#" if word[0].isdigit() else word for word in _WORD.findall(text.casefold())]
    grams = {*words, *map(" ".join, zip(["^", *words], words, strict=False))}
    scale = 1.0 / math.sqrt(max(len(grams), 1))
    found: dict[int, float] = {}
    for gram in grams:
        found[zlib.crc32(gram.encode()) % SIZE] = scale
    for at, pattern in enumerate(_COMPILED):
        if pattern.search(question[:2000]):
            found[SIZE + at] = 0.5
    return found


@dataclass(frozen=True)
class Weights:
    """A weight a feature, in steps of ``unit``, and what is added to the sum."""

    steps: array[int]
    unit: float
    bias: float

    @classmethod
    def from_json(cls, text: str) -> Weights:
        """Read what ``to_json`` wrote."""
        data = json.loads(text)
        return cls(array("b", base64.b64decode(data["weights"])), data["unit"], data["bias"])

    def to_json(self) -> str:
        """Return the weights as JSON text, a byte each in base64."""
        weights = base64.b64encode(self.steps.tobytes()).decode()
        return json.dumps({"bias": self.bias, "unit": self.unit, "weights": weights}) + "\n"

    def share(self, question: str) -> float:
        """Return the probability that the answer is a list of independent parts."""
        total = sum(self.steps[at] * value for at, value in features(question).items())
        score = min(max(total * self.unit + self.bias, -30.0), 30.0)
        return 1.0 / (1.0 + math.exp(-score))


@cache
def weights() -> Weights:
    """Return the shipped weights."""
    return Weights.from_json(_data("router.json"))


def questions() -> list[tuple[str, bool]]:
    """Return the labelled questions that the weights were learnt from."""
    lines = [line for line in _data("questions.tsv").splitlines() if not line.startswith("#")]
    return [(text, label == "1") for label, _, text in (line.partition("\t") for line in lines)]


def _data(name: str) -> str:
    return files("headrace.planners").joinpath("data", name).read_text("utf-8")
