"""What a proxy is told to do: a TOML file, read again when it changes."""

from __future__ import annotations

import logging
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, cast

from ...backends.openai_urls import normalize_base_url
from ..errors import HeadraceError, InvalidRequest
from .policies import Policy, read_policy

EVERY = "*"
_log = logging.getLogger("headrace.proxy")


@dataclass(frozen=True, slots=True)
class Config:
    """A proxy's settings, one a line of its file; see docs/proxy.md.

    Times are seconds: ``connect_timeout`` until the server is reached, ``timeout`` the longest
    silence of it, ``keepalive`` the longest silence of ours within a stream (0: no comments are
    sent). ``retries`` counts how often a request is sent again that the server was not reached with
    or refused (429, 503). ``keys_env`` names the environment variable that holds our own keys,
    ``backend_key_env`` the one with the key for the server.
    """

    backend: str
    retries: int = 0
    connect_timeout: float = 5.0
    timeout: float = 600.0
    keepalive: float = 15.0
    max_body: int = 20_000_000
    max_concurrency: int = 256
    count_usage: bool = True
    keys_env: str = ""
    backend_key_env: str = ""
    trace_prompts: bool = False
    models: Mapping[str, Policy] = field(default_factory=dict[str, Policy])
    keys: tuple[str, ...] = field(default=(), repr=False)
    backend_key: str = field(default="", repr=False)

    def policy(self, model: str) -> tuple[str, Policy]:
        """Return the policy for a model and its name: the model's own, else the longest pattern."""
        if model in self.models:
            return model, self.models[model]
        fitting = [name for name in self.models if fnmatchcase(model, name)]
        name = max(fitting, key=len, default=EVERY)
        return name, self.models.get(name, Policy())


def read_config(given: Mapping[str, Any], backend: str | None = None) -> Config:
    """Return the settings that a file holds. ``backend`` goes before the file's.

    Raises InvalidRequest for a setting that there is not, a value that cannot be, and an
    environment variable that is not set.
    """
    given = {**given}
    models: Any = given.pop("models", {})
    if not isinstance(models, Mapping):
        raise InvalidRequest(f'[models."name"] is a table of options, got {models!r:.60}')
    tables = cast("Mapping[str, Any]", models)
    given = {name: _setting(name, value) for name, value in given.items()}
    url = backend or given.get("backend")
    if not url:
        raise InvalidRequest("no backend: pass --backend URL, or write backend = ... into the file")
    policies = {name: read_policy(name, one) for name, one in tables.items()}
    settings: dict[str, Any] = {**given, "backend": normalize_base_url(url), "models": policies}
    config = Config(**settings)
    keys = tuple(_environment(config.keys_env).replace(",", " ").split())
    if config.keys_env and not keys:
        raise InvalidRequest(f"the environment variable {config.keys_env} holds no keys")
    return replace(config, keys=keys, backend_key=_environment(config.backend_key_env))


class Live:
    """The settings as they are now: the file is read again when it has changed.

    A file that cannot be read leaves the settings as they were; ``error`` says what is wrong with
    it, None when all is well. ``num_reloads`` counts both outcomes.
    """

    def __init__(self, path: Path | None = None, *, backend: str | None = None) -> None:
        self._path = path
        self._backend = backend
        self._stamp = self._look()
        self.error: str | None = None
        self.num_reloads = {"read": 0, "failed": 0}
        self._config = self._read()

    @property
    def config(self) -> Config:
        """The settings; looks whether the file has changed, which takes microseconds."""
        if self._path is not None and (stamp := self._look()) != self._stamp:
            self._stamp = stamp
            try:
                self._config, self.error = self._read(), None
                self.num_reloads["read"] += 1
                _log.info("read %s again", self._path)
            except HeadraceError as error:
                self.error = str(error)
                self.num_reloads["failed"] += 1
                _log.warning("kept the old settings: %s", error)
        return self._config

    def _look(self) -> tuple[int, int, int] | None:
        try:
            found = os.stat(self._path) if self._path is not None else None
        except OSError:
            return None
        return (found.st_mtime_ns, found.st_size, found.st_ino) if found else None

    def _read(self) -> Config:
        if self._path is None:
            return read_config({}, self._backend)
        try:
            given = tomllib.loads(self._path.read_text("utf-8"))
        except OSError as error:
            raise InvalidRequest(f"cannot read {self._path}: {error.strerror}") from error
        except (ValueError, RecursionError) as error:
            raise InvalidRequest(f"{self._path} is no TOML: {error}") from error
        try:
            return read_config(given, self._backend)
        except InvalidRequest as error:
            raise InvalidRequest(f"{self._path}: {error}") from error


_MADE = frozenset(("models", "keys", "backend_key"))
_EXAMPLE: Any = Config("")
_TYPES: dict[str, type] = {one.name: type(getattr(_EXAMPLE, one.name)) for one in fields(Config)}
_WORDS = {int: "whole number", float: "number", str: "text", bool: "true or false"}
_NEVER_ZERO = frozenset(("max_body", "max_concurrency", "timeout", "connect_timeout"))


def _setting(name: str, value: Any) -> Any:
    """Return a setting's value. Raises InvalidRequest."""
    if name not in _TYPES or name in _MADE:
        raise InvalidRequest(
            f"no setting {name!r:.40}; there are {', '.join(sorted(set(_TYPES) - _MADE))}"
        )
    wanted = _TYPES[name]
    if wanted is float and type(value) is int:
        value = float(value) if abs(value) < 2**63 else float("inf")
    if not isinstance(value, wanted) or isinstance(value, bool) != (wanted is bool):
        raise InvalidRequest(f"{name} is a {_WORDS[wanted]}, got {value!r:.40}")
    number: Any = value if wanted in (int, float) else 1
    if not 0 <= number < float("inf") or (number == 0 and name in _NEVER_ZERO):
        least = "more than 0" if name in _NEVER_ZERO else "0 or more"
        raise InvalidRequest(f"{name} must be {least}, got {value}")
    return value


def _environment(name: str) -> str:
    if not name:
        return ""
    value = os.environ.get(name, "").strip()
    if not value:
        raise InvalidRequest(f"the environment variable {name:.60} is not set")
    return value
