"""What one call does: contexts, then words, then the dictionary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...middleware.errors import InvalidRequest
from ..budget import Budget
from ..compressor import Compressor
from ..scorers import Scorer, TokenClassifier
from ..tokens import TokenCounter
from .call import Call
from .filtering import chosen, context_budget, ordered
from .outcome import figures, joined, label_line, labelled
from .ranking import ranked
from .reference import Reference
from .structured import as_text, compressed_parts
from .tags import Part, parts


@dataclass(frozen=True)
class Runner:
    """A scorer and a counter behind the reference's arguments.

    ``is_classifier`` says which of the reference's two paths they mean; a ``threshold`` takes the
    place of budgets; ``reference`` that of headrace's selection; ``notes`` are in every result.
    """

    scorer: Scorer
    counter: TokenCounter
    is_classifier: bool
    threshold: float | None = None
    reference: Reference | None = None
    notes: tuple[str, ...] = ()

    def compress(self, call: Call, *, is_tagged: bool = False) -> dict[str, Any]:
        """Return the reference's dictionary; ``is_tagged`` reads ``<llmlingua>`` tags."""
        contexts = call.contexts
        tagged = _tagged(call, contexts) if is_tagged or call.context_segs is not None else None
        if tagged is not None:
            contexts = ["".join(part.text for part in row) for row in tagged]
        notes = self.told(call)
        if not "".join(contexts).strip():
            notes.append("nothing to compress: only contexts are compressed, and they are empty")
        words: list[tuple[str, bool]] = []
        if self.reference is not None and tagged is None:
            found = self.reference.select(contexts, call.options())
            kept, outputs, words = found.contexts, found.texts, found.words
        else:
            tokens = self.counter.count_many(contexts)
            goal = self.goal(call, sum(tokens))
            kept = self._kept(call, contexts, tokens, goal, notes)
            outputs = self._outputs(call, contexts, tagged, kept, goal, words)
        asked = call.question if call.concate_question else ""
        prompt = joined(call.instruction, outputs, asked)
        before = joined(call.instruction, contexts, call.question)
        result = {
            "compressed_prompt": prompt,
            "compressed_prompt_list": outputs,
            **figures(self.counter.count(before), self.counter.count(prompt)),
            "kept_contexts": kept,
            "notes": notes,
        }
        if call.return_word_label:
            result["fn_labeled_original_prompt"] = label_line(words, call.word_sep, call.label_sep)
        return result

    def goal(self, call: Call, total: int) -> int:
        """Return the tokens that the contexts may have."""
        if call.target_token >= 0:
            return int(call.target_token)
        if self.is_classifier:
            return int(call.rate * total + 1e-9)
        around = self.counter.count(call.instruction)
        question = self.counter.count(call.question)
        whole = (total + around + question) * call.rate
        return max(int(whole - around - (question if call.concate_question else 0) + 1e-9), 0)

    def _kept(
        self,
        call: Call,
        contexts: Sequence[str],
        tokens: Sequence[int],
        goal: int,
        notes: list[str],
    ) -> list[int]:
        """Return which contexts stay, in the order they are to have."""
        everything = list(range(len(contexts)))
        rule = context_budget(goal, call.context_budget)
        is_asked = bool(call.question.strip()) or call.names_a_context_budget
        if len(contexts) < 2 or not call.use_context_level_filter or not is_asked:
            return everything
        total, most = sum(tokens), None
        if call.names_a_context_budget:
            most = call.target_context if call.target_context > 0 else None
            rule = call.context_level_rate * total
            if call.context_level_target_token > 0:
                rule = call.context_level_target_token
        elif self.is_classifier:
            rule = (goal + total) / 2
        if call.question.strip() and (self.is_classifier and call.rank_method == "llmlingua"):
            order, note = ranked(contexts, call.question, "bm25", self.scorer)
        else:
            order, note = ranked(contexts, call.question, call.rank_method, self.scorer)
        notes += [note] if note else []
        best = chosen(order, tokens, rule, call.force_context_ids, most)
        return ordered(best, call.reorder_context)

    def _outputs(
        self,
        call: Call,
        contexts: Sequence[str],
        tagged: Sequence[Sequence[Part]] | None,
        kept: Sequence[int],
        goal: int,
        words: list[tuple[str, bool]],
    ) -> list[str]:
        """Return the kept contexts, compressed; words with labels of all go to ``words``."""
        compressor = Compressor(self.scorer_for(call), self.counter)
        wishes: dict[str, Any] = {
            "question": call.question or None,
            "force_keep": call.forced,
            "drop_consecutive": call.drop_consecutive,
            "keep_digits": call.force_reserve_digit,
        }
        texts = [contexts[i] for i in kept]
        if not call.use_token_level_filter:
            words += [(w, i in kept) for i, text in enumerate(contexts) for w in text.split()]
            return texts
        if tagged is not None:
            total = self.counter.count("".join(contexts)) or 1
            rate = min(goal / total, 1.0) if call.target_token >= 0 else call.rate
            return compressed_parts(compressor, [tagged[i] for i in kept], rate, **wishes)
        between = self.counter.count("\n\n") * max(len(kept) - 1, 0)
        is_enough = goal >= sum(self.counter.count_many(contexts))
        budget = Budget(target_tokens=max(goal if is_enough else goal - between, 0))
        if self.threshold is not None:
            budget = Budget(threshold=self.threshold)
        results = compressor.compress(texts, budget, joint=True, **wishes)
        rows = dict(zip(kept, map(labelled, results), strict=True))
        for i, text in enumerate(contexts):
            words += rows.get(i) or [(word, False) for word in text.split()]
        return [result.text for result in results]

    def without_pairs(
        self, data: dict[str, Any], keys: Sequence[str], call: Call
    ) -> dict[str, Any]:
        """Return the data without the removable pairs that are over the budget."""
        own = [as_text({key: data[key]}) for key in keys if key in data]
        names = [key for key in keys if key in data]
        total = self.counter.count(as_text(data))
        left = context_budget(self.goal(call, total), call.context_budget)
        left -= self.counter.count(as_text({k: v for k, v in data.items() if k not in names}))
        order, _ = ranked(own, call.question, call.rank_method, self.scorer)
        stay = {names[i] for i in chosen(order, self.counter.count_many(own), left)}
        return {key: value for key, value in data.items() if key not in names or key in stay}

    def scorer_for(self, call: Call) -> Scorer:
        """Return the scorer that the call's arguments ask for; models are loaded once."""
        if isinstance(self.scorer, TokenClassifier):
            return self.scorer.reducing("first" if call.token_to_word == "first" else "mean")
        return self._causal(call)

    def _causal(self, call: Call) -> Scorer:
        scorer: Any = self.scorer
        if type(scorer).__name__ != "Perplexity":
            return self.scorer
        if call.rank_method != "longllmlingua" and not call.condition_compare:
            read: Scorer = replace(scorer, segment=call.iterative_size, rate=call.rate)
            return read
        if not call.question.strip():
            raise InvalidRequest("LongLLMLingua needs a question; give one, or rank by 'llmlingua'")
        from ..perplexity import QuestionPerplexity

        return QuestionPerplexity(
            scorer.model,
            device=scorer.device,
            dtype=scorer.dtype,
            segment=call.iterative_size,
            rate=call.rate,
            dynamic=call.dynamic_context_compression_ratio,
        )

    def told(self, call: Call) -> list[str]:
        """Return what to tell about a call before it is done."""
        own = call.notes(is_reference=self.reference is not None, is_classifier=self.is_classifier)
        return [*self.notes, *own]


def _tagged(call: Call, contexts: Sequence[str]) -> list[list[Part]]:
    if call.context_segs is None:
        return [parts(context) for context in contexts]
    rates = call.context_segs_rate or [[1.0] * len(row) for row in call.context_segs]
    flags = call.context_segs_compress or [[True] * len(row) for row in call.context_segs]
    return [
        [Part(t, r if f else 1.0) for t, r, f in zip(row, own, on, strict=True)]
        for row, own, on in zip(call.context_segs, rates, flags, strict=True)
    ]
