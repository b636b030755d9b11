"""Which server is this? It is asked once, by the pages on which each engine names itself."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from .dialects import DialectName

Ask = Callable[[str], Awaitable[Mapping[str, Any] | None]]

_OPENAI = frozenset({"openai", "openai-internal", "system"})
_OWNERS: dict[str, DialectName] = {
    "vllm": "vllm",
    "sglang": "sglang",
    "llamacpp": "llama.cpp",
    "library": "ollama",
}
_PAGES: dict[DialectName, tuple[str, ...]] = {
    "llama.cpp": ("/props",),
    "ollama": ("/api/version",),
    "tgi": ("/info",),
    "sglang": ("/server_info", "/get_server_info"),
    "vllm": ("/version",),
}
_FIRST_STRUCTURED = (0, 12)  # the vLLM that took structured_outputs for guided_*


@dataclass(frozen=True, slots=True)
class Server:
    """What a server says about itself; ``context_length`` is in tokens, None if unknown."""

    dialect: DialectName
    version: str = ""
    context_length: int | None = None


async def identify(ask: Ask, owner: str, host: str) -> Server:
    """Return what the server is, "openai" when it does not say.

    ``ask`` gets a page below the server's root, None when there is no such page; ``owner`` is the
    model's ``owned_by``. At most six small requests, and none to OpenAI itself.
    """
    if owner in _OPENAI or owner.startswith("user-") or host.endswith("openai.com"):
        return Server("openai")
    known = _OWNERS.get(owner)
    names: list[DialectName] = [known] if known else [*_PAGES]
    for name in names:
        for page in _PAGES[name]:
            if (said := await ask(page)) is not None and _is(name, said):
                return _server(name, said)
    return Server(known or "openai")


def _is(name: DialectName, said: Mapping[str, Any]) -> bool:
    """Whether a page has what only this engine writes on it."""
    if name == "llama.cpp":
        return "default_generation_settings" in said
    if name == "tgi":
        return "docker_label" in said or "router" in said
    if name == "sglang":
        return "grammar_backend" in said or "tokenizer_path" in said
    return isinstance(said.get("version"), str)


def _server(name: DialectName, said: Mapping[str, Any]) -> Server:
    if name == "llama.cpp":
        settings = said.get("default_generation_settings")
        length = cast("Any", settings).get("n_ctx") if isinstance(settings, Mapping) else None
        build = str(said.get("build_info", ""))
        return Server(name, build, length if isinstance(length, int) else None)
    version = str(said.get("version", ""))
    if name == "vllm" and _is_older(version):
        return Server("vllm-guided", version)
    length = said.get("max_total_tokens" if name == "tgi" else "context_length")
    return Server(name, version, length if isinstance(length, int) else None)


def _is_older(version: str) -> bool:
    numbers = re.match(r"(\d+)\.(\d+)\.\d", version)  # a build from source may be called 0.1.dev1
    return numbers is not None and (int(numbers[1]), int(numbers[2])) < _FIRST_STRUCTURED
