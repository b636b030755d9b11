"""headrace-mini as a folder that transformers and the LLMLingua-2 reference load."""

from __future__ import annotations

import shutil
from pathlib import Path

from . import weights


def export(folder: Path, *, source: Path = weights.DATA) -> Path:
    """Write a ``BertForTokenClassification`` in LLMLingua-2's format and return its folder.

    Weights are float32. The relevance head, which that format has no place for, goes beside them
    into ``relevance.safetensors``. The reference tells the kind of tokenizer from the folder's
    name: call it "…bert-base-multilingual-cased…" there.
    """
    from safetensors.torch import load_file, save_file

    folder.mkdir(parents=True, exist_ok=True)
    tensors = weights.unpack(load_file(source / weights.FILE))
    heads = {name: t for name, t in tensors.items() if name.startswith("relevance.")}
    body = {name: t for name, t in tensors.items() if name not in heads}
    save_file(body, folder / weights.FILE, {"format": "pt"})
    save_file(heads, folder / "relevance.safetensors", {"format": "pt"})
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(source / name, folder / name)
    return folder
