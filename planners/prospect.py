"""Whether to ask for a plan at all: what planned answers of this engine have come to so far."""

from __future__ import annotations

from dataclasses import dataclass

from .predictor import NODE_TOKENS, plain_seconds
from .speed import StepCost

LEARNT = 2  # plans; before that, the best case is expected
AGAIN = 50  # one request of so many is planned all the same: engines and models change
_LINE = 13  # tokens of a line of a plan
_LONG = 1000  # tokens of an answer, where nobody says how long it may be
_NEW = 0.2  # weight of a new plan
_TRIAL = 0.5  # and of a trial, in the share of plans that are of use


@dataclass(slots=True)
class Habits:
    """What became of an engine's plans of one kind: exponentially weighted means, in tokens.

    ``usable`` is the share of plans from which an answer was written, and ``longest`` the share of
    an answer's tokens that were written one after the other: those of its longest chain of parts,
    all where one call wrote it.
    """

    num_plans: int = 0
    num_written: int = 0
    num_refused: int = 0
    usable: float = 1.0
    plan_tokens: float = 0.0
    answer_tokens: float = 0.0
    num_parts: float = 0.0
    longest: float = 0.0

    def observe(
        self,
        plan_tokens: int,
        answer_tokens: int,
        num_parts: int,
        *,
        longest: float | None = None,
        is_trial: bool = False,
    ) -> None:
        """Take what a plan came to; ``num_parts`` of 0 says that it was of no use.

        ``longest`` is its own share, None where all parts were as long. A trial that came to an
        answer counts for more than what is ``AGAIN`` requests old.
        """
        is_new = is_trial and num_parts > 0
        self.num_plans += 1
        usable = _TRIAL if is_new else max(1 / (self.num_plans + 1), _NEW)
        self.usable += usable * ((num_parts > 0) - self.usable)
        weight = 1.0 if is_new else self._weight(self.num_plans)
        self.plan_tokens += weight * (plan_tokens - self.plan_tokens)
        if num_parts:
            self.num_written += 1
            weight = 1.0 if is_new else self._weight(self.num_written)
            self.answer_tokens += weight * (answer_tokens - self.answer_tokens)
            self.num_parts += weight * (num_parts - self.num_parts)
            share = 1 / num_parts if longest is None else longest
            self.longest += weight * (share - self.longest)

    def refuse(self) -> bool:
        """Count a request that is not divided; True where it is tried all the same."""
        self.num_refused += 1
        return self.num_refused % AGAIN == 0

    @staticmethod
    def _weight(number: int) -> float:
        return max(1 / number, _NEW)


@dataclass(frozen=True, slots=True)
class Prospect:
    """The gain to be expected from asking for a plan, all in all, and of what it was made.

    ``num_plans`` are those it was learnt from.
    """

    gain: float
    num_parts: int
    answer_tokens: int
    num_plans: int

    def __str__(self) -> str:
        """Say it in a report."""
        number = "one plan" if self.num_plans == 1 else f"{self.num_plans} plans"
        source = f" after {number}" if self.num_plans else ""
        return f"a gain of {self.gain:.2f} is expected{source}"


def prospect(
    cost: StepCost,
    habits: Habits,
    *,
    prompt: int,
    shared: int,
    max_tokens: int | None,
    most: int,
    width: int,
) -> Prospect:
    """Return what is to be expected of planning a prompt of ``prompt`` tokens.

    ``shared`` are the prompt's tokens that calls beside one another do not read again, ``most`` the
    most parts and ``width`` those written at a time. Expected are the plan's own tokens, the parts'
    prompts, one part that is longer than the others, answers that one call wrote, and plans that
    are of no use; before ``LEARNT`` plans, the best of several sizes.
    """
    long = max_tokens or _LONG
    if habits.num_written < LEARNT:
        sizes = [(n, _LINE * n, min(long, _LONG), 1 / n) for n in {2, 4, max(most, 2)} if n <= most]
    else:
        number = max(round(min(habits.num_parts, most)), 1)
        answer = min(round(habits.answer_tokens), long)
        sizes = [(number, round(habits.plan_tokens), answer, habits.longest)]
    usable = habits.usable if habits.num_plans >= LEARNT else 1.0
    found: list[Prospect] = []
    for number, plan, answer, longest in sizes:
        plain = plain_seconds(cost, prompt, answer)
        asked = cost.first(prompt + NODE_TOKENS)
        chain = max(longest * answer, answer / number)
        written = asked + _written(cost, number, plan, answer, chain, prompt, shared, width)
        wasted = asked + cost.steps(habits.plan_tokens, 1, prompt) + plain
        gain = plain / (usable * written + (1 - usable) * wasted)
        found.append(Prospect(gain, number, answer, habits.num_plans))
    return max(found, key=lambda one: one.gain, default=Prospect(1.0, 1, long, habits.num_plans))


def _written(
    cost: StepCost,
    number: int,
    plan: int,
    answer: int,
    chain: float,
    prompt: int,
    shared: int,
    width: int,
) -> float:
    """Return the seconds of a plan and of its parts, each of which begins with its line.

    ``chain`` are the tokens that come one after the other.
    """
    each = answer / number
    early = [min(each, plan * (1 - i / number)) for i in range(1, number + 1)]
    context = prompt + NODE_TOKENS + plan
    during = min(sum(early) / max(plan, 1), width, answer / max(chain, 1))
    left = answer - during * plan
    rows = max(min(left / max(chain, 1), width), 1.0)
    seconds = cost.call + number * cost.prefill * (prompt + plan + NODE_TOKENS - shared)
    seconds += plan * cost.seconds(1 + during, context * (1 + during))
    return seconds + max(left, 0) / rows * cost.seconds(rows, context * rows)
