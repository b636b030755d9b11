"""Addresses of servers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from headrace.backends import OpenAIBackend
from headrace.backends.openai_urls import normalize_base_url
from headrace.middleware.errors import (
    InvalidRequest,
)
from headrace.middleware.types import (
    Constraint,
)

Ask = Callable[..., Awaitable[list[Any]]]
Make = Callable[..., OpenAIBackend]
SCHEMA = Constraint("json_schema", '{"type": "object"}')


@pytest.mark.parametrize(
    ("given", "base"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1"),
        ("http://localhost:8000/", "http://localhost:8000/v1"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
        (" http://localhost:8000/v1/ ", "http://localhost:8000/v1"),
        ("http://[::1]:8000", "http://[::1]:8000/v1"),
        ("https://ark.example/api/v3", "https://ark.example/api/v3"),
        ("https://g.example/v1beta/openai/", "https://g.example/v1beta/openai"),
        ("http://h/v1/chat/completions", "http://h/v1"),
        ("https://h/openai/v1?api-version=2", "https://h/openai/v1?api-version=2"),
    ],
)
def test_base_urls_are_completed_and_never_doubled(given: str, base: str) -> None:
    assert normalize_base_url(given) == base
    assert normalize_base_url(base) == base


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://h", "http://", "", "http://[::1", "http://h:x"]
)
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidRequest, match="http"):
        OpenAIBackend(url)
