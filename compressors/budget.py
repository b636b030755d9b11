"""How much to keep."""

from __future__ import annotations

from dataclasses import dataclass

from ..middleware.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Budget:
    """Exactly one of a share of the tokens, a number of tokens, a least score, or a quality floor.

    ``rate`` is in [0, 1]: tokens out are at most ``floor(rate * tokens in)``.
    ``target_tokens`` is 0 or more. ``threshold`` is in [0, 1]: every unit with that score or a
    higher one stays, whatever that comes to. ``quality`` is in [0, 1]: the fewest best units stay
    whose scores add up to that share of all scores, whatever that comes to (nucleus sampling's
    rule, Holtzman 2020, section 3.1, on importance); a higher one keeps those of a lower one and
    more, and 1 keeps everything.

    Raises InvalidRequest for anything else.

    >>> Budget(rate=0.5).limit(7)
    3
    """

    rate: float | None = None
    target_tokens: int | None = None
    threshold: float | None = None
    quality: float | None = None

    def __post_init__(self) -> None:
        shares = {"rate": self.rate, "threshold": self.threshold, "quality": self.quality}
        target = self.target_tokens
        every = {**shares, "target_tokens": target}
        given = [f"{name}={value!r}" for name, value in every.items() if value is not None]
        if len(given) != 1:
            raise InvalidRequest(
                "give exactly one of rate, target_tokens, threshold and quality,"
                f" got {', '.join(given) or 'none'}"
            )
        for name, value in shares.items():
            if value is not None and not (_is_number(value) and 0 <= value <= 1):
                raise InvalidRequest(f"{name} must be in [0, 1], got {value!r}")
        if target is not None and (type(target) is not int or target < 0):
            raise InvalidRequest(f"target_tokens must be a whole number from 0 on, got {target!r}")

    def limit(self, tokens: int) -> int | None:
        """Return the most tokens that may be left of so many, None where scores decide."""
        if self.rate is not None:
            return int(self.rate * tokens + 1e-9)
        return self.target_tokens

    def keeps_all(self, tokens: int) -> bool:
        """Return whether nothing has to go of so many tokens."""
        limit = self.limit(tokens)
        if limit is not None:
            return limit >= tokens
        return self.threshold == 0 or self.quality == 1


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
