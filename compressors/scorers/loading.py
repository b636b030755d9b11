"""Loading a token classifier with transformers and torch: the only place that meets them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from ...middleware.errors import InvalidRequest, ModelUnavailable
from ...middleware.models import silent_transformers
from ..gathering import Gatherer
from ..tokens import load_tokenizer, replace_surrogates
from .windows import Window, batches

Precision = Literal["float32", "bfloat16", "int8"]
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

_COUNTS_FROM_PADDING = frozenset(
    ("roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "longformer", "xmod")
)
"""Kinds of model whose positions begin behind the padding index, as fairseq's do."""
_CPU_TOKENS = 1024
_GPU_TOKENS = 32768


class Loaded:
    """A token classifier and its tokenizer, ready to use from several threads.

    ``prefix`` and ``suffix`` are the special tokens that the tokenizer puts around a text,
    ``unknown`` is the id of tokens outside the vocabulary, ``room`` says how many tokens of text
    a window takes. ``gather`` runs the model for all threads.
    """

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        device: str,
        config: dict[str, Any],
        *,
        batch_tokens: int | None = None,
        shares: bool = True,
    ) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._device = device
        probe = tokenizer.encode("a", add_special_tokens=True)
        content = [i for i, special in enumerate(probe.special_tokens_mask) if not special]
        self.prefix: list[int] = probe.ids[: content[0]]
        self.suffix: list[int] = probe.ids[content[-1] + 1 :]
        self.unknown: int | None = _unknown(tokenizer)
        added = tokenizer.get_added_tokens_decoder().items()
        self._unspoken = [i for i, token in added if token.special and i != self.unknown]
        pad = config.get("pad_token_id")
        self.pad = int(0 if pad is None else pad)
        positions = int(config.get("max_position_embeddings") or 512)
        if config.get("model_type") in _COUNTS_FROM_PADDING:
            positions -= self.pad + 1
        self._positions = positions
        self.batch_tokens = batch_tokens or (_CPU_TOKENS if device == "cpu" else _GPU_TOKENS)
        self.gather = Gatherer[Ints, Floats](
            self._keep,
            width=lambda row: len(row) + len(self.prefix) + len(self.suffix),
            most_tokens=self.batch_tokens,
            shares=shares,
        )

    def room(self, window: int) -> int:
        """Return how many tokens of text fit into a window beside the special tokens."""
        return max(min(window, self._positions) - len(self.prefix) - len(self.suffix), 1)

    def encode(self, texts: Sequence[str]) -> list[tuple[Ints, Ints]]:
        """Return each text's ids and its tokens' (start, end) characters, (tokens, 2).

        Special tokens are not added, and a text that spells one is read as text.
        """
        clean = [replace_surrogates(text) for text in texts]
        encoded = self._tokenizer.encode_batch(clean, add_special_tokens=False)
        found: list[tuple[Ints, Ints]] = []
        for one in encoded:
            ids = np.array(one.ids, dtype=np.int64)
            if self._unspoken and self.unknown is not None:  # Unigram has "</s>" among its pieces
                ids[np.isin(ids, self._unspoken)] = self.unknown
            found.append((ids, np.array(one.offsets, dtype=np.int64).reshape(-1, 2)))
        return found

    def forward(self, rows: Sequence[Ints]) -> list[Floats]:
        """Return p(keep) for each token of each row, special tokens and padding left out."""
        return [*self.gather(rows)]

    def _keep(self, rows: Sequence[Ints]) -> list[Floats]:
        skip = len(self.prefix)
        keep = self._run([[*self.prefix, *row.tolist(), *self.suffix] for row in rows])
        return [line[skip : skip + len(row)] for line, row in zip(keep, rows, strict=True)]

    def probabilities(
        self, rows: Sequence[Sequence[int]], hidden: int | None = None
    ) -> list[Floats]:
        """Return p(keep) for each token of each row as it is, in batches of like length.

        Tokens whose id is ``hidden`` are attended to by none.
        """
        found: list[Floats] = [np.zeros(0, dtype=np.float32)] * len(rows)
        jobs = [Window(i, 0, len(row)) for i, row in enumerate(rows)]
        for batch in batches(jobs, self.batch_tokens):
            lines = self._run([rows[job.text] for job in batch], hidden)
            for job, line in zip(batch, lines, strict=True):
                found[job.text] = line[: job.end]
        return found

    def grow(self, size: int, seed: int) -> None:
        """Give the model's vocabulary ``size`` entries; new ones are drawn by transformers.

        Leaves the process's random state as it is.
        """
        import torch

        if self._model.get_input_embeddings().num_embeddings >= size:
            return
        random: Any = torch.random
        with random.fork_rng(devices=[]):
            random.manual_seed(seed)
            self._model.resize_token_embeddings(size)

    def _run(self, rows: Sequence[Sequence[int]], hidden: int | None = None) -> Floats:
        import torch

        width = max(map(len, rows))
        ids = np.full((len(rows), width), self.pad, dtype=np.int64)
        mask = np.zeros((len(rows), width), dtype=np.int64)
        for line, row in enumerate(rows):
            ids[line, : len(row)] = row
            mask[line, : len(row)] = 1
        if hidden is not None:
            mask[ids == hidden] = 0
        inputs = {"input_ids": torch.tensor(ids, device=self._device)}
        if not mask.all():
            inputs["attention_mask"] = torch.tensor(mask, device=self._device)
        with torch.inference_mode():
            logits = self._model(**inputs).logits.float()
            keep: Floats = logits.softmax(-1)[..., 1].cpu().numpy()
        return keep


def load_classifier(
    path: Path,
    config: dict[str, Any],
    *,
    device: str | None = None,
    precision: Precision = "float32",
    compile: bool = False,
    batch_tokens: int | None = None,
) -> Loaded:
    """Return the classifier in a folder, in eval mode.

    ``config`` is the folder's config.json. Only at float32 do rows of several threads share a
    pass: elsewhere a row's scores depend on its company. Raises ModelUnavailable when the weights
    cannot be read, and InvalidRequest for int8 on anything but a CPU.
    """
    import torch
    from transformers import AutoModelForTokenClassification

    place = device or _best_device()
    if precision == "int8" and place != "cpu":
        raise InvalidRequest(f"int8 runs on the CPU only, not on {place!r}; use bfloat16 there")
    kind = torch.bfloat16 if precision == "bfloat16" else torch.float32
    load = cast("Any", AutoModelForTokenClassification).from_pretrained
    try:
        with silent_transformers():
            model: Any = load(str(path), dtype=kind, use_safetensors=True)
    except (OSError, ValueError) as error:
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise ModelUnavailable(f"cannot load the token classifier in {path}: {first}") from error
    tokenizer = load_tokenizer(path)
    tokenizer.encode_special_tokens = True  # "[SEP]" in a text is text
    model = model.to(place).eval()
    if precision == "int8":
        model = _quantised(model)
    if compile:
        model = cast("Any", torch).compile(model, dynamic=True)
    shares = precision == "float32"
    return Loaded(model, tokenizer, place, config, batch_tokens=batch_tokens, shares=shares)


def _quantised(model: Any) -> Any:
    """Return the model with int8 weights in its linear layers, a scale for each output.

    Activations are scaled as they come. One scale a matrix keeps other words twice as often.
    """
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces the move to torchao, which is an extra
        quantization = cast("Any", torch.ao.quantization)
        each_output = {torch.nn.Linear: quantization.per_channel_dynamic_qconfig}
        return quantization.quantize_dynamic(model, each_output)


def _unknown(tokenizer: Any) -> int | None:
    model = tokenizer.model
    if (number := getattr(model, "unk_id", None)) is not None:
        return int(number)
    token = getattr(model, "unk_token", None)
    found: int | None = tokenizer.token_to_id(token or "<unk>")
    return found


def _best_device() -> str:
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
