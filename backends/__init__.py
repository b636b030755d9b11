"""Where a request is answered.

make_backend()                             the embedded model, in this process
make_backend("http://localhost:8000/v1")   any OpenAI-compatible server
make_backend("vllm", model="...")          vLLM, in this process
"""

from __future__ import annotations

from ..middleware.errors import InvalidRequest
from .base import Backend, Capabilities, Job
from .openai import OpenAIBackend
from .openai_urls import shown_url
from .transformers import TransformersBackend

__all__ = [
    "Backend",
    "Capabilities",
    "Job",
    "OpenAIBackend",
    "TransformersBackend",
    "make_backend",
    "shown_url",
]


def make_backend(name_or_url: str | None = None, model: str | None = None) -> Backend:
    """Return the backend that a name or a URL stands for.

    None and "transformers" run ``model`` (default "smollm2") in this process; "vllm" runs
    ``model``, which must be named, in vLLM's engine; an http(s) URL is an OpenAI-compatible
    server. Raises InvalidRequest for anything else, HeadraceError where vLLM is not installed.
    """
    if name_or_url in (None, "transformers"):
        return TransformersBackend(model or "smollm2")
    if name_or_url == "vllm":
        from .vllm import VLLMBackend

        if model is None:
            raise InvalidRequest("the backend 'vllm' needs a model, a folder or a hub's name")
        return VLLMBackend(model)
    if name_or_url.startswith(("http://", "https://")):
        return OpenAIBackend(name_or_url, model=model)
    raise InvalidRequest(
        f"no backend {shown_url(name_or_url)!r}; choose 'transformers', 'vllm' or an http(s) URL"
    )
