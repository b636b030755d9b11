"""LLMLingua's ``PromptCompressor``: the same arguments and dictionary, headrace underneath."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

from ...middleware.errors import InvalidRequest
from ..budget import Budget
from ..compressor import Compressor
from ..recover import recovered
from ..scorers import TokenClassifier
from ..tokens import TokenCounter
from .call import Call
from .models import DEFAULT_MODEL, counter_of, scorer_of
from .outcome import figures, joined
from .ranking import Ranked, ranked
from .reference import Reference
from .running import Runner
from .structured import as_text, json_policy, removable


class PromptCompressor:
    """Drop-in for ``llmlingua.PromptCompressor`` 0.2.2.

    Arguments have the reference's names, order and defaults, and results its keys; two keys are
    new: ``kept_contexts`` (indices) and ``notes`` (what was asked for and does nothing, and why).
    What headrace does differently: output is the input with whole words left out, white space
    survives, the budget is met and never exceeded, one threshold serves all contexts, and no
    context goes unless a question or a context budget asks for it.

    ``model_name`` is a checkpoint in LLMLingua-2's format with ``use_llmlingua2=True``, else a
    causal model; or "lexical" or "mini", which need none. ``device_map`` "cuda" means the best
    device there is. ``use_slingua`` (of the reference's main branch) keeps what scores 0.5 or
    more.

    ``reference=True`` reproduces the reference's LLMLingua-2 selection word by word, its damage
    included, for published numbers; it needs the classifier and cl100k_base's file. ``counter``
    counts in another target's tokens.

    No global state is touched, no model's code is run, no argument is changed. Safe to use from
    several threads. Raises ModelUnavailable and InvalidRequest.
    """

    def __init__(
        self,
        model_name: str = DEFAULT_MODEL,
        device_map: str = "cuda",
        model_config: Mapping[str, Any] | None = None,
        open_api_config: Mapping[str, Any] | None = None,
        use_llmlingua2: bool = False,
        llmlingua2_config: Mapping[str, Any] | None = None,
        *,
        use_slingua: bool = False,
        reference: bool = False,
        counter: TokenCounter | None = None,
    ) -> None:
        if use_llmlingua2 and use_slingua:
            raise InvalidRequest("use_llmlingua2 and use_slingua exclude one another; give one")
        notes: list[str] = []
        if open_api_config:
            notes.append("open_api_config is not used: no text leaves this machine")
        batch, max_force_token = self.init_llmlingua2(**dict(llmlingua2_config or {}))
        self.scorer = scorer_of(
            model_name,
            device_map,
            model_config or {},
            batch,
            is_classifier=use_llmlingua2 or use_slingua,
            notes=notes,
        )
        self.counter = counter or counter_of(notes, must_be_exact=reference)
        exact: Reference | None = None
        if reference:
            if not use_llmlingua2 or not isinstance(self.scorer, TokenClassifier):
                raise InvalidRequest(
                    "reference=True reproduces LLMLingua-2 only; give use_llmlingua2=True and a"
                    f" token classifier, got {model_name!r:.80}"
                )
            exact = Reference(self.scorer, self.counter.count, max_force_token)
        self._runner = Runner(
            self.scorer,
            self.counter,
            use_llmlingua2 or use_slingua,
            threshold=0.5 if use_slingua else None,
            reference=exact,
            notes=tuple(notes),
        )

    @staticmethod
    def init_llmlingua2(
        max_batch_size: int | None = None, max_force_token: int = 100
    ) -> tuple[int | None, int]:
        """Check ``llmlingua2_config``; None batches by tokens, as is fastest."""
        if max_batch_size is not None and max_batch_size < 1:
            raise InvalidRequest(f"max_batch_size must be at least 1, got {max_batch_size!r}")
        return max_batch_size, max_force_token

    def __call__(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Return ``compress_prompt`` of the same arguments."""
        return self.compress_prompt(*args, **kwargs)

    def compress_prompt(
        self,
        context: Sequence[str] | str,
        instruction: str = "",
        question: str = "",
        rate: float = 0.5,
        target_token: float = -1,
        iterative_size: int = 200,
        force_context_ids: Sequence[int] | None = None,
        force_context_number: int | None = None,
        use_sentence_level_filter: bool = False,
        use_context_level_filter: bool = True,
        use_token_level_filter: bool = True,
        keep_split: bool = False,
        keep_first_sentence: int = 0,
        keep_last_sentence: int = 0,
        keep_sentence_number: int = 0,
        high_priority_bonus: int = 100,
        context_budget: str = "+100",
        token_budget_ratio: float = 1.4,
        condition_in_question: str = "none",
        reorder_context: str = "original",
        dynamic_context_compression_ratio: float = 0.0,
        condition_compare: bool = False,
        add_instruction: bool = False,
        rank_method: str = "llmlingua",
        concate_question: bool = True,
        context_segs: Sequence[Sequence[str]] | None = None,
        context_segs_rate: Sequence[Sequence[float]] | None = None,
        context_segs_compress: Sequence[Sequence[bool]] | None = None,
        target_context: int = -1,
        context_level_rate: float = 1.0,
        context_level_target_token: float = -1,
        return_word_label: bool = False,
        word_sep: str = "\t\t|\t\t",
        label_sep: str = " ",
        token_to_word: str = "mean",
        force_tokens: Sequence[str] | None = None,
        force_reserve_digit: bool = False,
        drop_consecutive: bool = False,
        chunk_end_tokens: Sequence[str] | None = None,
        strict_preserve_uncompressed: bool = True,
    ) -> dict[str, Any]:
        """Return the prompt with its contexts compressed, and the reference's figures.

        ``rate`` is kept tokens by all: of the contexts with a classifier, of the whole prompt with
        a causal model; ``target_token`` counts the contexts' tokens, -1 is unset. Instruction
        and question are put around the contexts unchanged. Whole contexts go (the last ones by
        ``rank_method``) when there are several and ``use_context_level_filter``, and a question or
        a context budget (``target_context``, ``context_level_rate``,
        ``context_level_target_token``) asks for it; ``force_context_ids`` stay. What has no effect
        is in ``notes``.

        Raises InvalidRequest for arguments that make no sense.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        return self._runner.compress(Call(**given))

    def compress_prompt_llmlingua2(
        self,
        context: Sequence[str] | str,
        rate: float = 0.5,
        target_token: int = -1,
        use_context_level_filter: bool = False,
        use_token_level_filter: bool = True,
        target_context: int = -1,
        context_level_rate: float = 1.0,
        context_level_target_token: int = -1,
        force_context_ids: Sequence[int] | None = None,
        return_word_label: bool = False,
        word_sep: str = "\t\t|\t\t",
        label_sep: str = " ",
        token_to_word: str = "mean",
        force_tokens: Sequence[str] | None = None,
        force_reserve_digit: bool = False,
        drop_consecutive: bool = False,
        chunk_end_tokens: Sequence[str] | None = None,
    ) -> dict[str, Any]:
        """Return ``compress_prompt`` without instruction and question."""
        given = {name: value for name, value in locals().items() if name != "self"}
        return self._runner.compress(Call(**given))

    def structured_compress_prompt(
        self,
        context: Sequence[str] | str,
        instruction: str = "",
        question: str = "",
        rate: float = 0.5,
        target_token: float = -1,
        iterative_size: int = 200,
        force_context_ids: Sequence[int] | None = None,
        force_context_number: int | None = None,
        use_sentence_level_filter: bool = False,
        use_context_level_filter: bool = True,
        use_token_level_filter: bool = True,
        keep_split: bool = False,
        keep_first_sentence: int = 0,
        keep_last_sentence: int = 0,
        keep_sentence_number: int = 0,
        high_priority_bonus: int = 100,
        context_budget: str = "+100",
        token_budget_ratio: float = 1.4,
        condition_in_question: str = "none",
        reorder_context: str = "original",
        dynamic_context_compression_ratio: float = 0.0,
        condition_compare: bool = False,
        add_instruction: bool = False,
        rank_method: str = "llmlingua",
        concate_question: bool = True,
        strict_preserve_uncompressed: bool = True,
    ) -> dict[str, Any]:
        """Return ``compress_prompt`` of contexts with ``<llmlingua, rate=.., compress=..>`` tags.

        A tag's rate is its part's, ``compress=False`` keeps it byte for byte; what is outside
        tags is compressed at ``rate``, or at what ``target_token`` comes to. See ``tags.parts``.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        return self._runner.compress(Call(**given), is_tagged=True)

    def compress_json(
        self,
        json_data: Mapping[str, Any],
        json_config: str | Mapping[str, Any],
        instruction: str = "",
        question: str = "",
        rate: float = 0.5,
        target_token: float = -1,
        iterative_size: int = 200,
        use_sentence_level_filter: bool = False,
        use_keyvalue_level_filter: bool = False,
        use_token_level_filter: bool = True,
        keep_split: bool = False,
        keep_first_sentence: int = 0,
        keep_last_sentence: int = 0,
        keep_sentence_number: int = 0,
        high_priority_bonus: int = 100,
        context_budget: str = "+100",
        token_budget_ratio: float = 1.4,
        condition_in_question: str = "none",
        reorder_keyvalue: str = "original",
        condition_compare: bool = False,
        rank_method: str = "llmlingua",
    ) -> dict[str, Any]:
        """Return the data with its strings shortened by key, as an object in ``compressed_prompt``.

        ``json_config`` gives each key ``rate``, ``compress`` and ``pair_remove`` (``value_type`` is
        read from the data); numbers, types, nesting and order stay. With
        ``use_keyvalue_level_filter``, pairs that may be removed go, the least first by
        ``rank_method``, until the whole is within ``rate`` and ``context_budget``.
        """
        given = {name: value for name, value in locals().items() if name != "self"}
        for name in ("json_data", "json_config", "use_keyvalue_level_filter"):
            del given[name]
        call = Call(context=[], reorder_context=given.pop("reorder_keyvalue"), **given)
        data = dict(json_data)
        before = as_text(data)
        if use_keyvalue_level_filter:
            data = self._runner.without_pairs(data, removable(json_config), call)
        policy = json_policy(json_data, json_config)
        text = as_text(data)
        if use_token_level_filter:
            [result] = Compressor(self._runner.scorer_for(call), self.counter).compress(
                [text], Budget(rate=rate), question=question or None, formats=["json"], json=policy
            )
            text = result.text
        notes = self._runner.told(call)
        counted = [joined(instruction, [one], question) for one in (before, text)]
        return {
            **figures(*self.counter.count_many(counted)),
            "compressed_prompt": json.loads(text),
            "kept_contexts": [i for i, key in enumerate(json_data) if key in data],
            "notes": notes,
        }

    def recover(self, original_prompt: str, compressed_prompt: str, response: str) -> str:
        """Return the response in the original's wording (LongLLMLingua, section 4.4).

        Warns and returns it unchanged when the compressed prompt is not the original with words
        left out.
        """
        if not response.strip():
            return response
        try:
            return recovered(original_prompt, compressed_prompt, response)
        except InvalidRequest as error:
            warnings.warn(f"recover leaves the response as it is: {error}", stacklevel=2)
            return response

    def get_rank_results(
        self,
        context: list[str],
        question: str,
        rank_method: str,
        condition_in_question: str,
        context_tokens_length: list[int],
    ) -> Ranked:
        """Return (index, score) of the contexts, best first; the last two arguments do nothing.

        Raises InvalidRequest for an unknown method.
        """
        del condition_in_question, context_tokens_length
        return ranked(context, question, rank_method, self.scorer)[0]
