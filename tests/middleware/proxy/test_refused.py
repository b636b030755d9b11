"""Settings and paths that are no numbers and no paths of the API."""

from __future__ import annotations

import pytest

from headrace.middleware.errors import InvalidRequest
from headrace.middleware.proxy.config import read_config
from headrace.middleware.proxy.errors import Failure
from headrace.middleware.proxy.upstream import address


@pytest.mark.parametrize("name", ["timeout", "connect_timeout", "keepalive"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_a_time_that_is_no_time_is_refused(name: str, value: float) -> None:
    with pytest.raises(InvalidRequest, match=name):
        read_config({name: value}, "http://h/v1")


def test_a_pattern_that_is_none_is_refused_with_the_policy_that_has_it() -> None:
    with pytest.raises(InvalidRequest, match=r"models.*keep pattern '\('"):
        read_config({"models": {"m": {"rate": 0.5, "keep": ["("]}}}, "http://h/v1")


@pytest.mark.parametrize(
    "path",
    ["/v1/../admin", "/v1/%2e%2e/admin", "/v1/..%2fadmin", "/v1/%2e%2e%5cadmin", "/v1/..;/admin",
     "/v1/%252e%252e/admin"],
)  # fmt: skip
def test_a_path_that_climbs_out_in_any_spelling_is_refused(path: str) -> None:
    config = read_config({}, "http://h/team/v1")
    with pytest.raises(Failure):
        address(config, path, b"")
    assert address(config, "/v1/models/a..b", b"").endswith("/team/v1/models/a..b")
