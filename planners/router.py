"""Should this request be planned? From cheap to dear, each stage may decide.

What forbids it, whatever the caller wants (``forbidden``); rules on plain text that say no; a
linear classifier of what is left. Where that is unsure, the model itself may decide, in the call
that answers (``deciding.py``). Measured by Skeleton-of-Thought (arXiv 2307.15337, section 4.3):
planning helps generic, knowledge, common-sense and counterfactual questions and hurts writing,
coding, maths and estimates.

A wrong "no" costs only time; a wrong "yes" costs quality, which is dearer: a question is planned
where ``share * GAIN > (1 - share) * LOSS``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..middleware.types import Opaque, Request
from .classifier import weights

MIN_ANSWER = 150
GAIN, LOSS = 1.0, 2.5
SURE = LOSS / (GAIN + LOSS)
LONGEST = 40  # words, twice the labels' longest: what they do not cover is never sure
UNSURE = 0.35  # the model's own decision costs a few prompt tokens, so less is asked for
_MAX_QUESTION = 1500
_TOOLS = ("tools", "functions", "tool_choice")
_FORMATS = ("response_format", "guided_json", "guided_regex", "guided_choice", "guided_grammar",
            "structured_outputs", "grammar", "regex", "json_schema")  # fmt: skip

_OFF: tuple[tuple[str, str], ...] = (
    (
        "asks for code",
        r"```|\b(?:code|coding|function|python|javascript|java|typescript|c\+\+|rust|golang|sql"
        r"|regex|bash|script|html|css|program|programme|debug|compile|algorithm|unit tests?)\b",
    ),
    (
        "asks for maths",
        r"\d\s*[-+*/^=×÷]\s*\d|\b[a-z]\s*=\s*|\$[^$]*\\|\\frac|\b(?:solve|calculate|compute|prove"
        r"|proof|equation|integral|derivative|probability|how many|how much|estimate|sum of)\b",
    ),
    (
        "asks for a short answer",
        r"\b(?:briefly|brief|short(?:ly)?(?![- ]term)|concise(?:ly)?|tl;?dr)\b"
        r"|\b(?:yes or no|true or false)\b"
        r"|\bin (?:one|a|a single|two|1|2) (?:word|sentence|line|paragraph)s?\b|\bone[- ]sentence\b"
        r"|\b(?:in|under|at most|max(?:imum)?|within)\s+\d+ (?:words|characters|tokens)\b"
        r"|\bwhich (?:one )?of the following\b|^\s*\(?[A-D][.)]\s",
    ),
    (
        "asks for one piece of writing",
        r"\b(?:write|compose|draft|create|generate|tell|give|make up|invent)\b(?:\s+\S+){0,5}\s+"
        r"(?:poem|haiku|sonnet|story|tale|novel|song|lyrics|essay|letter|e-?mail|message|speech"
        r"|script|dialogue|joke|blog|post|article|review|report|tweet|slogan|paragraph|ad)\b"
        r"|\b(?:imagine you|pretend|role-?play|act as|you are an?)\b",
    ),
    (
        "works on one given text",
        r"\b(?:translate|rewrite|rephrase|paraphrase|summari[sz]e|summary|proofread|correct (?:the"
        r"|this)|edit (?:the|this)|classify|extract|convert|continue (?:the|this))\b",
    ),
    (
        "asks for one step after the other",
        r"\bstep[- ]by[- ]step\b|\bin order\b(?! to)|chronolog",
    ),
    ("asks for a format", r"\b(?:json|yaml|xml|csv|markdown table|table|latex)\b"),
)
_ON = re.compile(
    r"\b(?:benefits|advantages|disadvantages|drawbacks|downsides|pros and cons|reasons|causes"
    r"|effects|impacts?|consequences|implications|factors|ways|methods|strategies|techniques|tips"
    r"|ideas|examples|types|kinds|features|characteristics|aspects|principles|elements|components"
    r"|differences|similarities|challenges|risks|symptoms|signs|steps|habits|skills|uses"
    r"|applications|options|alternatives|approaches|trends|roles|qualities|mistakes|arguments"
    r"|best practices|recommendations|measures|lessons|stages|criteria|topics)\b"
    r"|\b(?:list|compare|outline|overview of|guide to)\b"
    r"|\bhow (?:can|could|do|should|might) (?:i|we|you|one|people|someone)\b"
    r"|\bwhat (?:if|would happen|might have happened|could have happened)\b"
    r"|哪些|有什么|优缺点|优点|缺点|方法|区别|列出|好处|原因",
    re.I,
)
_FACT = re.compile(r"^\s*(?:who|when|where|whose|what (?:is|was)|which)\b", re.I)


@dataclass(frozen=True, slots=True)
class Route:
    """Whether to plan, and why in a few words.

    ``is_unsure``: neither yes nor no; the model itself may say. ``share`` is the classifier's
    probability that the answer is a list of independent parts, None where rules decided.
    """

    is_planned: bool
    why: str
    is_unsure: bool = False
    share: float | None = None


def forbidden(request: Request, *, constrained: bool = False) -> str:
    """Return what makes planning impossible for this request, "" when nothing does.

    ``constrained``: the request's own constraint is no reason, since its parts keep it.
    """
    sampling, extra = request.sampling, request.sampling.extra
    last = request.messages[-1]
    is_held = request.constraint is not None and not constrained
    if is_held or any(extra.get(name) for name in _FORMATS):
        return "the output has a constraint"
    if any(extra.get(name) for name in _TOOLS) or any(m.is_tool for m in request.messages):
        return "tools are in play"
    if last.role != "user":
        return "the last message is not the user's"
    if sampling.stop:
        return "stop strings end the whole answer"
    if (extra.get("n") or 1) != 1 or extra.get("logprobs"):
        return "more than one plain answer is asked for"
    return ""


def route(request: Request) -> Route:
    """Say whether the answer will be long and list-like; ``forbidden`` is asked first."""
    if why := forbidden(request):
        return Route(False, why)
    limit = request.sampling.max_tokens
    if limit is not None and limit < MIN_ANSWER:
        return Route(False, f"max_tokens of {limit} is less than {MIN_ANSWER}")
    if any(isinstance(part, Opaque) for part in request.messages[-1].parts):
        return Route(False, "the question is not only text")
    question = request.messages[-1].text if not request.documents else request.question
    if not question.strip():
        return Route(False, "there is no question")
    if len(question) > _MAX_QUESTION:
        return Route(False, "the question is long: it works on a given text")
    for why, pattern in _OFF:
        if re.search(pattern, question, re.I | re.M):
            return Route(False, why)
    if request.documents and _FACT.search(question):
        return Route(False, "asks for a fact from the documents")
    share = weights().share(question)
    is_known = len(question.split()) <= LONGEST
    if is_known and (share >= SURE or (share >= UNSURE and _ON.search(question))):
        return Route(True, "looks like a list of independent parts", share=share)
    if share >= UNSURE and not request.documents:
        return Route(False, "may be a list of independent parts", is_unsure=True, share=share)
    return Route(False, "does not look like a list of independent parts", share=share)
