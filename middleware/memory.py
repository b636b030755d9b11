"""What was done before, kept by the content's hash and bounded."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Result = TypeVar("Result")


@dataclass(slots=True)
class Memory(Generic[Result]):
    """Keeps the ``size`` results used last. Thread-safe; the texts themselves are not kept.

    >>> memory = Memory[int](size=2)
    >>> memory.get("a text", lambda: 6), memory.get("a text", lambda: 7)
    (6, 6)
    """

    size: int
    _known: OrderedDict[bytes, Result] = field(default_factory=OrderedDict[bytes, Result])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __contains__(self, key: str) -> bool:
        """Whether the result for a key is known."""
        with self._lock:
            return _digest(key) in self._known

    def get(self, key: str, make: Callable[[], Result]) -> Result:
        """Return the result for a key, made when it is not known; not made under the lock."""
        digest = _digest(key)
        with self._lock:
            if digest in self._known:
                self._known.move_to_end(digest)
                return self._known[digest]
        result = make()
        with self._lock:
            self._known[digest] = result
            self._known.move_to_end(digest)
            while len(self._known) > self.size:
                self._known.popitem(last=False)
        return result


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
