"""Addresses of OpenAI-compatible servers."""

from __future__ import annotations

import re
from urllib.parse import urlsplit, urlunsplit

from ..middleware.errors import InvalidRequest


def normalize_base_url(url: str) -> str:
    """Return the base of the API: ``/v1`` is added to a bare host and to nothing else.

    Raises InvalidRequest when it is no http or https URL.

    >>> normalize_base_url("http://localhost:8000/")
    'http://localhost:8000/v1'
    """
    try:
        parts = urlsplit(url.strip())
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a malformed address or port
        is_http, parts = False, urlsplit("")
    if not is_http:
        raise InvalidRequest(
            f"not an http(s) URL: {shown_url(url)!r:.100}; write http://host:port/v1"
        )
    path = parts.path.rstrip("/").removesuffix("/chat/completions").rstrip("/")
    return urlunsplit((parts.scheme, parts.netloc, path or "/v1", parts.query, ""))


def shown_url(url: str) -> str:
    """Return the URL as it may be shown: without user name, password and query.

    >>> shown_url("http://ann:secret@host:port/v1?key=secret")
    'http://host:port/v1'
    """
    return re.sub(r"//[^/@\s]*@", "//", re.split(r"[?#]", url.strip(), maxsplit=1)[0])


def root_url(base_url: str) -> str:
    """Return the address below which a server keeps its own pages, beside the API's ``/v1``.

    >>> root_url("http://localhost:8000/v1")
    'http://localhost:8000'
    """
    parts = urlsplit(base_url)
    path = parts.path.removesuffix("/v1")
    return urlunsplit((parts.scheme, parts.netloc, path, "", ""))
