"""One call's parameters, with the reference's names, defaults and meanings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from ...middleware.errors import InvalidRequest
from .reference import Options


@dataclass(frozen=True)
class Call:
    """Parameters of ``compress_prompt``; its docstring says what each does."""

    context: Any
    instruction: str = ""
    question: str = ""
    rate: float = 0.5
    target_token: float = -1
    iterative_size: int = 200
    force_context_ids: Sequence[int] | None = None
    force_context_number: int | None = None
    use_sentence_level_filter: bool = False
    use_context_level_filter: bool = True
    use_token_level_filter: bool = True
    keep_split: bool = False
    keep_first_sentence: int = 0
    keep_last_sentence: int = 0
    keep_sentence_number: int = 0
    high_priority_bonus: int = 100
    context_budget: str = "+100"
    token_budget_ratio: float = 1.4
    condition_in_question: str = "none"
    reorder_context: str = "original"
    dynamic_context_compression_ratio: float = 0.0
    condition_compare: bool = False
    add_instruction: bool = False
    rank_method: str = "llmlingua"
    concate_question: bool = True
    context_segs: Sequence[Sequence[str]] | None = None
    context_segs_rate: Sequence[Sequence[float]] | None = None
    context_segs_compress: Sequence[Sequence[bool]] | None = None
    target_context: int = -1
    context_level_rate: float = 1.0
    context_level_target_token: float = -1
    return_word_label: bool = False
    word_sep: str = "\t\t|\t\t"
    label_sep: str = " "
    token_to_word: str = "mean"
    force_tokens: Sequence[str] | None = None
    force_reserve_digit: bool = False
    drop_consecutive: bool = False
    chunk_end_tokens: Sequence[str] | None = None
    strict_preserve_uncompressed: bool = True

    def __post_init__(self) -> None:
        if not _is_number(self.rate) or not 0 <= self.rate <= 1:
            raise InvalidRequest(f"rate must be in [0, 1], got {self.rate!r:.80}")
        if not _is_number(self.target_token):
            raise InvalidRequest(f"target_token must be a number, got {self.target_token!r:.80}")
        if self.token_to_word not in ("mean", "first"):
            raise InvalidRequest(
                f"token_to_word must be 'mean' or 'first', got {self.token_to_word!r:.80}"
            )
        for token in self.forced:
            if not isinstance(token, str) or not token:  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InvalidRequest(f"force_tokens must be non-empty strings, got {token!r:.80}")

    @property
    def contexts(self) -> list[str]:
        """The contexts as a list of strings; None and an empty list are none.

        Raises InvalidRequest for anything that is not text.
        """
        given: Any = [self.context] if isinstance(self.context, str) else self.context
        found: list[Any] = [] if given is None else list(given)
        for place, context in enumerate(found):
            if not isinstance(context, str):
                raise InvalidRequest(
                    f"context {place} must be a string, got {type(context).__name__}; convert it"
                )
        return found

    @property
    def forced(self) -> tuple[str, ...]:
        """The forced tokens."""
        if isinstance(self.force_tokens, str):
            raise InvalidRequest(f"force_tokens must be a list, got {self.force_tokens!r:.80}")
        return tuple(self.force_tokens or ())

    @property
    def names_a_context_budget(self) -> bool:
        """Whether the call asks for whole contexts to go."""
        return (
            self.target_context > 0
            or self.context_level_rate < 1
            or self.context_level_target_token > 0
        )

    def options(self) -> Options:
        """Return what the reference's own selection takes of it."""
        shared = {field.name for field in fields(Options)} & {field.name for field in fields(Call)}
        values = {name: getattr(self, name) for name in shared}
        values["force_tokens"] = self.forced
        values["force_context_ids"] = tuple(self.force_context_ids or ())
        values["chunk_end_tokens"] = tuple(self.chunk_end_tokens or (".", "\n"))
        return Options(**values)

    def notes(self, *, is_reference: bool, is_classifier: bool) -> list[str]:
        """Return a line for each parameter that was set and does nothing here."""
        without = dict(_IGNORED)
        if is_reference:
            without |= dict.fromkeys(_NOT_LLMLINGUA2, "LLMLingua-2 does not know it")
            without.pop("chunk_end_tokens")
            without |= {"instruction": _PUT_AROUND, "question": _PUT_AROUND}
        elif is_classifier:
            without["iterative_size"] = "a classifier reads windows, not segments"
            without["condition_compare"] = "a classifier knows no question"
            without["dynamic_context_compression_ratio"] = (
                "one threshold over all contexts gives dense ones more"
            )
        return [
            f"{field.name} is not used: {without[field.name]}"
            for field in fields(Call)
            if field.name in without and getattr(self, field.name) != field.default
        ]


_PUT_AROUND = "LLMLingua-2 drops it; it is put around the contexts unchanged"
_SENTENCES = "words are dropped without dropping sentences first"
_NOT_LLMLINGUA2 = (
    "iterative_size",
    "context_budget",
    "reorder_context",
    "condition_compare",
    "rank_method",
    "dynamic_context_compression_ratio",
)
_IGNORED = {
    "force_context_number": "it does nothing in the reference either; use force_context_ids",
    "use_sentence_level_filter": _SENTENCES,
    "keep_first_sentence": _SENTENCES,
    "keep_last_sentence": _SENTENCES,
    "keep_sentence_number": _SENTENCES,
    "high_priority_bonus": _SENTENCES,
    "token_budget_ratio": _SENTENCES,
    "keep_split": "paragraph breaks always survive",
    "condition_in_question": "rank_method and condition_compare say what is conditioned",
    "add_instruction": "the question alone is the condition",
    "strict_preserve_uncompressed": "what is not to be compressed never changes",
    "chunk_end_tokens": "windows end where sentences do",
}


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
