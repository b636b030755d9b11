"""What becomes of a finished text under a constraint: a value, or an error that says why not."""

from __future__ import annotations

from typing import Any, cast

from .check import strict_json, violation
from .errors import BackendError
from .explain import explain
from .matching import Field, ends
from .template import Template
from .truncation import truncated
from .types import Constraint, Enforcement, Response


class Rejected(BackendError):
    """The text breaks the constraint: ``problem`` says how, in words for the model too.

    ``is_worth_retrying`` is False where the engine had promised that this cannot happen.
    """

    def __init__(self, message: str, problem: str, *, is_worth_retrying: bool) -> None:
        super().__init__(message)
        self.problem = problem
        self.is_worth_retrying = is_worth_retrying


def parsed(response: Response, constraint: Constraint) -> Any:
    """Return the value of the answer.

    Raises Truncated for a text that was cut before it was complete or may be half a value,
    Rejected for one that breaks the constraint or that the caller's type refuses.
    """
    text, enforced = response.text, response.enforced or Enforcement()
    problem = broken(text, constraint)
    is_whole = enforced.was_closed or _is_whole(text, constraint)
    if response.finish_reason == "length" and not is_whole:
        raise truncated(response, constraint, fits=problem is None)
    if problem and response.finish_reason == "content_filter":
        raise BackendError(
            f"the engine's content filter ended the answer before the {constraint.kind} was "
            f"complete; it wrote {text!r:.80}"
        )
    if problem:
        raise Rejected(
            f"the engine's output breaks the {constraint.kind} constraint: {problem}; "
            f"it wrote {text!r:.80}",
            problem,
            is_worth_retrying=enforced.level != "full",
        )
    try:
        return constraint.parse(text) if constraint.parse else _plain(text, constraint)
    except Exception as error:  # a type's own validators know more than its schema, and raise any
        problem = explain(error, text=text)
        raise Rejected(
            f"the output fits the {constraint.kind} but not the type: {problem}",
            problem,
            is_worth_retrying=True,
        ) from error


def broken(text: str, constraint: Constraint) -> str | None:
    """Return what is wrong with the text in a few words, None when it keeps the constraint."""
    try:
        return violation(text, constraint)
    except TimeoutError:
        return "its pattern takes too long to check; write it without nested repeats"
    except RecursionError:
        return "nested too deeply to be checked"


def _plain(text: str, constraint: Constraint) -> Any:
    """Return the kind's own value, for a constraint that came without a type."""
    match constraint.kind:
        case "json_schema":
            return strict_json(text)
        case "template":
            return Template.from_spec(cast("str", constraint.spec)).parse(text)
        case _:
            return text


def _is_whole(text: str, constraint: Constraint) -> bool:
    """Whether a text that ended at the limit of tokens cannot be the beginning of a longer one."""
    match constraint.kind:
        case "json_schema":
            return _is_json(text) and text.rstrip()[-1:] not in "0123456789"
        case "choice":
            begun = [one for one in constraint.spec if one.startswith(text)]
            return begun == [text]
        case "template":
            if broken(text, constraint):
                return False
            template = Template.from_spec(cast("str", constraint.spec))
            last = template.parts[-1]
            if not isinstance(last, Field) or last.kind == "text":
                return True
            start = len(text) - len(template.split(text)[last.name])
            return not ends(last, text, start, "").is_open
        case _:
            return False


def _is_json(text: str) -> bool:
    try:
        strict_json(text)
    except (ValueError, RecursionError):
        return False
    return True


def decision(constraint: Constraint, response: Response, problems: list[str]) -> str:
    """Return the report's few words."""
    enforced = response.enforced or Enforcement()
    by = f" by {enforced.by}" if enforced.by else ""
    match enforced.level:
        case "full":
            how = f"{constraint.kind} enforced while decoding{by}, output validated"
        case "partial":
            rest = ", ".join(enforced.residual[:3]) + ("..." if len(enforced.residual) > 3 else "")
            how = f"{constraint.kind} enforced in part{by}, the rest validated ({rest})"
        case "none":
            how = f"{constraint.kind} not enforced by the engine, output validated"
    if response.finish_reason == "length" or enforced.was_closed:
        how += "; brought to an end early by max_tokens"
        how += f", from character {enforced.closed_at} on" if enforced.closed_at is not None else ""
    if problems:
        how += f"; answer {len(problems) + 1}, because: {problems[-1]:.80}"
    return how


def details(constraint: Constraint, response: Response, problems: list[str]) -> dict[str, Any]:
    """Return the same for machines."""
    enforced = response.enforced or Enforcement()
    return {
        "kind": constraint.kind,
        "enforced": enforced.level,
        "by": enforced.by,
        "residual": list(enforced.residual),
        "was_closed": enforced.was_closed,
        "closed_at": enforced.closed_at,
        "problems": problems,
    }
