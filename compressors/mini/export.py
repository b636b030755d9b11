"""headrace-mini as a folder that transformers and the LLMLingua-2 reference load."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import tensorfile, weights


def export(folder: Path, *, source: Path = weights.DATA) -> Path:
    """Write a ``BertForTokenClassification`` in LLMLingua-2's format and return its folder.

    Weights are float32. The relevance head, which that format has no place for, goes beside them
    into ``relevance.safetensors``. The reference tells the kind of tokenizer from the folder's
    name: call it "…bert-base-multilingual-cased…" there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tensors = weights.as_tensors(weights.read(source))
    heads = {name: t for name, t in tensors.items() if name.startswith("relevance.")}
    body = {name: t for name, t in tensors.items() if name not in heads}
    tensorfile.save(body, folder / weights.FILE)
    tensorfile.save(heads, folder / "relevance.safetensors")
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(source / name, folder / name)
    return folder
