"""An engine that keeps failing is left alone for a while."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Breaker:
    """When to leave an engine alone (Nygard, "Release It!", circuit breaker).

    After ``failures`` requests in a row that failed in spite of their retries, the engine gets
    none for ``seconds``; then one goes as a probe. If it is answered, all go; if not, the engine
    is left alone for twice as long, and so on up to ``longest`` seconds.
    """

    failures: int = 5
    seconds: float = 10.0
    longest: float = 300.0

    def __post_init__(self) -> None:
        if self.failures < 1:
            raise InvalidRequest(f"failures is at least 1, got {self.failures}")
        if self.seconds <= 0 or self.longest < self.seconds:
            raise InvalidRequest(
                f"seconds is above 0 and at most longest, got {self.seconds} and {self.longest}"
            )


class Circuit:
    """The state of one engine. Times are the caller's clock, in seconds."""

    def __init__(self, breaker: Breaker | None) -> None:
        self._breaker = breaker
        self._num_failed = 0
        self._times_open = 0
        self._until: float | None = None
        self._is_probing = False

    @property
    def num_failed(self) -> int:
        """Requests in a row that failed."""
        return self._num_failed

    def wait(self, now: float) -> float:
        """Return how many seconds to leave the engine alone, 0 when a request may go.

        While a probe is under way, that is a tenth of the time that it was left alone for.
        """
        if self._breaker is None or self._until is None:
            return 0.0
        if self._is_probing:
            return self._pause() / 10
        return max(self._until - now, 0.0)

    def enter(self) -> bool:
        """Let a request go, which ``wait`` allowed. Returns whether it is the probe."""
        self._is_probing = self._until is not None
        return self._is_probing

    def leave(self) -> None:
        """Say that the probe was given up by its caller: the next request is one again."""
        self._is_probing = False

    def succeeded(self) -> None:
        """Say that the engine answered."""
        self._num_failed = self._times_open = 0
        self._until = None
        self._is_probing = False

    def failed(self, now: float, *, is_probe: bool) -> bool:
        """Say that a request failed. Returns whether that opened the circuit."""
        if self._breaker is None or (self._until is not None and not is_probe):
            return False
        self._num_failed += 1
        self._is_probing = False
        if not is_probe and self._num_failed < self._breaker.failures:
            return False
        self._times_open += 1
        self._until = now + self._pause()
        return True

    def _pause(self) -> float:
        assert self._breaker is not None
        doubled = self._breaker.seconds * 2.0 ** min(max(self._times_open - 1, 0), 30)
        return min(doubled, self._breaker.longest)
