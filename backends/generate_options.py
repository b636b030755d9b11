"""What transformers' own generation is asked for: names and values, checked before any loading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..middleware.errors import InvalidRequest

CACHES: tuple[str, ...] = (
    *("dynamic", "static", "sliding_window", "hybrid"),
    *("offloaded", "offloaded_static", "quantized"),
)
_DRAFTS = frozenset(
    {"assistant_model", "assistant_early_exit", "prompt_lookup_num_tokens", "use_mtp"}
)
_DRAFTED = frozenset(
    {"num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold"}
    | {"max_matching_ngram_size"}
)
_CACHED = frozenset({"cache_implementation", "cache_config", "max_cache_len", "prefill_chunk_size"})
GENERATE = _DRAFTS | _DRAFTED | _CACHED | {"compile", "continuous"}

LOAD = frozenset(
    ("attn_implementation", "device_map", "max_memory", "offload_folder", "quantization_config")
)
_FIXED = {
    "trust_remote_code": "code from a checkpoint is never run",
    "use_safetensors": "only safetensors are read",
    "local_files_only": "give a folder or a name that is on this machine",
    "dtype": "give dtype= to TransformersBackend",
    "torch_dtype": "give dtype= to TransformersBackend",
}


@dataclass(frozen=True)
class GenerateOptions:
    """Options of ``model.generate`` for what our own loop cannot do.

    ``assistant`` is the name of the assistant's model, ``continuous`` the options of transformers'
    own paged batching (``ContinuousBatchingConfig``), None without it; ``compiles`` asks for
    torch.compile; ``plain`` goes to ``generate`` as it is.
    """

    assistant: str | None = None
    continuous: Mapping[str, Any] | None = None
    compiles: bool = False
    plain: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> GenerateOptions:
        """Check options. Raises InvalidRequest for one that is unknown or cannot be combined."""
        for name in given:
            if name not in GENERATE:
                raise InvalidRequest(
                    f"generate has no option {name!r}; choose among {', '.join(sorted(GENERATE))}"
                    " (length, sampling and stop strings belong to the request)"
                )
        _check_cache(given.get("cache_implementation"))
        drafts = sorted(_DRAFTS & given.keys())
        if len(drafts) > 1:
            raise InvalidRequest(f"one source of drafts at a time, got {' and '.join(drafts)}")
        if unused := sorted(_DRAFTED & given.keys()) if not drafts else []:
            raise InvalidRequest(
                f"{unused[0]} needs a source of drafts: add one of {', '.join(sorted(_DRAFTS))}"
            )
        if drafts and given.get("cache_implementation", "dynamic") != "dynamic":
            raise InvalidRequest(
                f"{drafts[0]} needs a cache that can be cut back, the dynamic one; leave out"
                f" cache_implementation={given['cache_implementation']!r}"
            )
        if given.get("compile") and "static" not in str(given.get("cache_implementation")):
            raise InvalidRequest(
                "compile needs a cache of fixed size: add cache_implementation='static'"
            )
        continuous = given.get("continuous") or None
        if continuous is not None and (others := sorted(given.keys() - {"continuous"})):
            raise InvalidRequest(
                f"continuous batching has a paged cache and no drafts; leave out {others[0]}"
            )
        own = {"assistant_model", "continuous", "compile"}
        return cls(
            assistant=given.get("assistant_model"),
            continuous={} if continuous is True else continuous,
            compiles=bool(given.get("compile")),
            plain={name: value for name, value in given.items() if name not in own},
        )

    @property
    def drafts(self) -> bool:
        """Whether tokens are guessed first, which transformers does for one row at a time."""
        return self.assistant is not None or bool(_DRAFTS & self.plain.keys())

    @property
    def words(self) -> str:
        """The options as a person wrote them."""
        found = dict(self.plain)
        if self.assistant is not None:
            found["assistant_model"] = self.assistant
        if self.continuous is not None:
            found["continuous"] = self.continuous or True
        return ", ".join(f"{name}={value!r:.40}" for name, value in found.items())


def _check_cache(name: object) -> None:
    if name is None or name in CACHES:
        return
    reasons = {
        "paged": "through generate() it answers nothing; use generate={'continuous': True}",
        "sink": "transformers has no SinkCache any more; use a model with sliding windows",
    }
    raise InvalidRequest(
        f"no cache_implementation {name!r:.40}:"
        f" {reasons.get(str(name), 'choose among ' + ', '.join(CACHES))}"
    )


def check_load(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of ``from_pretrained``. Raises InvalidRequest for others than these."""
    for name in given:
        if name in LOAD:
            continue
        why = _FIXED.get(name, f"choose among {', '.join(sorted(LOAD))}")
        raise InvalidRequest(f"load has no option {name!r}: {why}")
    return dict(given)
