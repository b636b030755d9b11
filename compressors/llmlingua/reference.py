"""LLMLingua-2's selection as its published code does it: same weights, same kept words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ...middleware.errors import InvalidRequest
from ..scorers.classifier import TokenClassifier
from .words import Family, Forcing, Word, merged, reduced

MAX_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Options:
    """The reference's parameters, with its names and defaults."""

    rate: float = 0.5
    target_token: float = -1
    use_context_level_filter: bool = False
    use_token_level_filter: bool = True
    target_context: int = -1
    context_level_rate: float = 1.0
    context_level_target_token: float = -1
    force_context_ids: Sequence[int] = ()
    token_to_word: str = "mean"
    force_tokens: Sequence[str] = ()
    force_reserve_digit: bool = False
    drop_consecutive: bool = False
    chunk_end_tokens: Sequence[str] = (".", "\n")


@dataclass(frozen=True, slots=True)
class Selection:
    """Kept contexts' indices, their texts, and all contexts' words with whether they stayed."""

    contexts: list[int]
    texts: list[str]
    words: list[tuple[str, bool]]


@dataclass(frozen=True)
class Reference:
    """The reference's selection on a checkpoint in LLMLingua-2's format (section 4.2 of the paper).

    ``count`` gives a word's tokens in the target's vocabulary (cl100k_base in the reference).
    Texts are cut at 510 tokens, decoded, tokenised again and thresholded chunk by chunk, and
    XLM-RoBERTa gets unknown tokens around each chunk, as published. Where the reference raises
    (only unknown characters, a rate of 0) this keeps nothing.
    """

    scorer: TokenClassifier
    count: Callable[[str], int]
    max_force_token: int = 100
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def select(self, contexts: Sequence[str], options: Options) -> Selection:
        """Return what stays of each context.

        Raises InvalidRequest for more forced tokens than ``max_force_token``.
        """
        forcing = self._forcing(options)
        chunks = [self._chunks(text, forcing, options) for text in contexts]
        kept = list(range(len(contexts)))
        read: list[list[list[Word]]] | None = None
        rate, target = options.rate, options.target_token
        if options.use_context_level_filter and len(contexts) > 1:
            read = self._read(chunks, forcing)
            kept = self._filtered(contexts, read, options)
            left = sum(self.count(chunk) for i in kept for chunk in chunks[i])
            rate = _share(target, left) if target >= 0 else rate
        elif target > 0:
            rate = _share(target, sum(map(self.count, contexts)))
        reduce = max(0, 1 - rate) if options.use_token_level_filter else 0
        if reduce <= 0:
            texts = ["".join(map(forcing.original, chunks[i])) for i in kept]
            words = [(word, True) for text in texts for word in text.split()]
            return Selection(kept, texts, words)
        return self._compressed(read or self._read(chunks, forcing), kept, reduce, options)

    def _compressed(
        self, read: Sequence[Sequence[Sequence[Word]]], kept: list[int], reduce: float, o: Options
    ) -> Selection:
        texts: list[str] = []
        labelled: list[tuple[str, bool]] = []
        for i, chunks in enumerate(read):
            text = ""
            for words in chunks:
                flags = self._kept(words, reduce, o) if i in kept else [False] * len(words)
                chosen = [word.text for word, flag in zip(words, flags, strict=True) if flag]
                text += self._tokenizer.decoder.decode(chosen)
                labelled += [(self._shown(w), f) for w, f in zip(words, flags, strict=True)]
            texts += [text] if i in kept else []
        return Selection(kept, texts, labelled)

    def _kept(self, words: Sequence[Word], reduce: float, options: Options) -> list[bool]:
        if not words:
            return []
        forced = options.force_tokens
        values = [reduced(word.probabilities, options.token_to_word) for word in words]
        if options.drop_consecutive:
            _mute_repeats(words, values, reduce, forced)
        weighted = [
            value
            for word, value in zip(words, values, strict=True)
            for _ in range(self.count(word.text))
        ]
        percent = min(int(100 * reduce + 1), 100)
        threshold = np.percentile(weighted, percent) if weighted else 1.0
        flags: list[bool] = []
        last = None
        for word, value in zip(words, values, strict=True):
            keep = bool(value > threshold or (threshold == 1.0 and value == threshold))
            if keep and options.drop_consecutive and word.text in forced and last == word.text:
                keep = False
            last = word.text if keep else last
            flags.append(keep)
        return flags

    def _filtered(
        self,
        contexts: Sequence[str],
        read: Sequence[Sequence[Sequence[Word]]],
        options: Options,
    ) -> list[int]:
        """Return the contexts that the reference's context filter lets through."""
        total = sum(map(self.count, contexts))
        share, target = options.context_level_rate, options.context_level_target_token
        if options.target_context <= 0 and share >= 1.0 and target <= 0:
            fine = options.use_token_level_filter
            if options.target_token < 0 and options.rate < 1.0:
                share = (options.rate + 1.0) / 2 if fine else options.rate
            if options.target_token >= 0:
                target = options.target_token * 2 if fine else options.target_token
        if options.target_context >= 0:
            share = min(options.target_context / len(contexts), 1.0)
        if target >= 0:
            share = _share(target, total)
        means: list[Any] = []
        for part in read:
            values = [reduced(w.unforced, options.token_to_word) for words in part for w in words]
            means.append(sum(values) / len(values) if values else 0.0)
        threshold = np.percentile(means, int(100 * (1 - share)))
        forced = options.force_context_ids
        return [i for i, mean in enumerate(means) if mean >= threshold or i in forced]

    def _read(self, chunks: Sequence[Sequence[str]], forcing: Forcing) -> list[list[list[Word]]]:
        """Return the words of each chunk of each context, all read together."""
        rows = iter(self._words([chunk for part in chunks for chunk in part], forcing))
        return [[next(rows) for _ in part] for part in chunks]

    def _words(self, chunks: Sequence[str], forcing: Forcing) -> list[list[Word]]:
        """Return each chunk's words: tokenised again, read, special tokens left out."""
        tokenizer, model = self._tokenizer, self._model
        unknown = model.unknown if model.unknown is not None else model.pad
        edge = (unknown, unknown)
        if self.family == "bert":
            edge = (model.prefix[0], model.suffix[0])
        rows: list[list[int]] = []
        for chunk in chunks:
            tokens = tokenizer.encode(chunk, add_special_tokens=False).tokens
            known = (tokenizer.token_to_id(token) for token in tokens)
            ids = [unknown if token is None else int(token) for token in known]
            rows.append([edge[0], *ids, edge[1]][:MAX_TOKENS])
        pad = model.pad if self.family == "bert" else None
        if any(max(row) >= self._model_size for row in rows):
            self._grow()
        found: list[list[Word]] = []
        for ids, values in zip(rows, model.probabilities(rows, pad), strict=True):
            named = [(tokenizer.id_to_token(i), p) for i, p in zip(ids, values, strict=True)]
            real = [(token, p) for token, p in named if token not in self._special]
            tokens, shares = [token for token, _ in real], [p for _, p in real]
            found.append(merged(tokens, shares, self.family, forcing))
        return found

    def _chunks(self, text: str, forcing: Forcing, options: Options) -> list[str]:
        """Cut at 510 tokens, after the last chunk end there is, and decode each part."""
        ends = set(options.chunk_end_tokens)
        for spelled, stand_in in forcing.stand_ins.items():
            text = text.replace(spelled, stand_in)
            ends |= {stand_in} if spelled in ends else set()
        tokens: list[str] = self._tokenizer.encode(text, add_special_tokens=False).tokens
        room = MAX_TOKENS - 2
        found: list[str] = []
        start = 0
        while start < len(tokens):
            end = start + room
            if end > len(tokens) - 1:
                end = len(tokens) - 1
            else:
                stops = (at for at in range(end, start, -1) if tokens[at] in ends)
                end = next(stops, end)
            found.append(self._tokenizer.decoder.decode(tokens[start : end + 1]))
            start = end + 1
        return found

    def _forcing(self, options: Options) -> Forcing:
        tokens = options.force_tokens
        if len(tokens) > self.max_force_token:
            raise InvalidRequest(
                f"force_tokens takes {self.max_force_token} strings, got {len(tokens)}; raise"
                " max_force_token in llmlingua2_config"
            )
        encode = self._tokenizer.encode
        stand_ins = {
            token: f"[NEW{i}]"
            for i, token in enumerate(tokens)
            if len(encode(token, add_special_tokens=False).ids) != 1
        }
        return Forcing(tokens, options.force_reserve_digit, stand_ins)

    def _shown(self, word: Word) -> str:
        return word.text if self.family == "bert" else word.text.lstrip("▁")

    @cached_property
    def family(self) -> Family:
        """Which of the reference's two ways to join tokens the tokenizer needs."""
        return "bert" if type(self._tokenizer.model).__name__ == "WordPiece" else "xlm-roberta"

    @cached_property
    def _model(self) -> Any:
        return self.scorer.load()

    @cached_property
    def _special(self) -> frozenset[str]:
        own = self._tokenizer.get_added_tokens_decoder().values()
        stand_ins = {f"[NEW{i}]" for i in range(self.max_force_token)}
        return frozenset(token.content for token in own if token.special) - stand_ins

    @cached_property
    def _tokenizer(self) -> Any:
        """The tokenizer, which reads "[SEP]" in a text as a special token, as the reference's."""
        from tokenizers import AddedToken

        from ..tokens import load_tokenizer

        tokenizer = load_tokenizer(self.scorer.path)
        stand_ins = [f"[NEW{i}]" for i in range(self.max_force_token)]
        tokenizer.add_special_tokens(
            [AddedToken(token, special=True, normalized=False) for token in stand_ins]
        )
        return tokenizer

    @cached_property
    def _model_size(self) -> int:
        return int(self.scorer.config["vocab_size"])

    def _grow(self) -> None:
        """Give the stand-ins embeddings, once; drawn as the reference draws them (seed 42)."""
        with self._lock:
            self._model.grow(self._tokenizer.get_vocab_size(), seed=42)


def _share(target: float, total: float) -> float:
    return min(target / total, 1.0) if total else 1.0


def _mute_repeats(
    words: Sequence[Word], values: list[Any], reduce: float, forced: Sequence[str]
) -> None:
    """Set a forced word that follows its like to 0 when no word between the two will stay."""
    threshold = np.percentile(values, min(int(100 * reduce), 100))
    is_between, previous = False, None
    for i, word in enumerate(words):
        if word.text not in forced:
            is_between = bool(is_between or values[i] > threshold)
            continue
        if is_between:
            is_between = False
        elif word.text == previous:
            values[i] = 0.0
        previous = word.text
