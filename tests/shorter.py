"""What a shortened value may be of the one that it was."""

from __future__ import annotations

from typing import Any


def assert_shorter(new: Any, old: Any) -> None:
    """Same structure; a string is its old one with something left out, and not empty."""
    if isinstance(old, str) and isinstance(new, str):
        rest = iter(old)
        assert all(char in rest for char in new)
        assert bool(new.strip()) == bool(old.strip())
        assert new == old or len(new) < len(old)
    elif isinstance(old, dict):
        assert_shorter(list(new.items()), list(old.items()))
    elif isinstance(old, (list, tuple)):
        assert type(new) is type(old)
        assert len(new) == len(old)
        for one, other in zip(new, old, strict=True):
            assert_shorter(one, other)
    else:
        assert new == old
