"""How much to keep."""

from __future__ import annotations

from dataclasses import dataclass

from ..middleware.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Budget:
    """Exactly one of a share of the tokens, a number of tokens, or a least score.

    ``rate`` is in [0, 1]: tokens out are at most ``floor(rate * tokens in)``.
    ``target_tokens`` is 0 or more. ``threshold`` is in [0, 1]: every unit with that score or a
    higher one stays, whatever that comes to.

    Raises InvalidRequest for anything else.

    >>> Budget(rate=0.5).limit(7)
    3
    """

    rate: float | None = None
    target_tokens: int | None = None
    threshold: float | None = None

    def __post_init__(self) -> None:
        given = [
            f"{name}={value!r}"
            for name, value in (
                ("rate", self.rate),
                ("target_tokens", self.target_tokens),
                ("threshold", self.threshold),
            )
            if value is not None
        ]
        if len(given) != 1:
            raise InvalidRequest(
                "give exactly one of rate, target_tokens and threshold,"
                f" got {', '.join(given) or 'none'}"
            )
        for name, value in (("rate", self.rate), ("threshold", self.threshold)):
            if value is not None and not (_is_number(value) and 0 <= value <= 1):
                raise InvalidRequest(f"{name} must be in [0, 1], got {value!r}")
        target = self.target_tokens
        if target is not None and (type(target) is not int or target < 0):
            raise InvalidRequest(f"target_tokens must be a whole number from 0 on, got {target!r}")

    def limit(self, tokens: int) -> int | None:
        """Return the most tokens that may be left of so many, None for a threshold."""
        if self.rate is not None:
            return int(self.rate * tokens + 1e-9)
        return self.target_tokens


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
