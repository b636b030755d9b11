"""From a trained network to the folder that the package ships."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from ...middleware.models import resolve
from ..mini import nibbles, runners, tensorfile, weights
from ..mini.network import Network
from ..tokens import load_tokenizer
from .start import BASE, encoder_weights

SUMS = "SHA256SUMS"


def write(network: Network, folder: Path) -> None:
    """Write int8 weights, config, tokenizer and their checksums."""
    folder.mkdir(parents=True, exist_ok=True)
    base = resolve(BASE, kind="encoder")
    tensorfile.save(weights.pack(network.state_dict()), folder / weights.FILE)
    tensorfile.save(nibbles.pack(_untied(base)), folder / runners.EMBEDDER)
    tokenizer = load_tokenizer(base)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    _write_json(folder / "tokenizer_config.json", _TOKENIZER)
    config = json.loads((base / "config.json").read_text("utf-8"))
    _write_json(folder / "config.json", {**config, **_HEAD})
    others = ("config.json", "tokenizer.json", "tokenizer_config.json")
    names = (weights.FILE, runners.EMBEDDER, *others)
    lines = [f"{checksum(folder / name)}  {name}\n" for name in names]
    (folder / SUMS).write_text("".join(lines), encoding="utf-8")


def checksum(path: Path) -> str:
    """Return a file's SHA-256, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _untied(base: Path) -> dict[str, Any]:
    """Return the published encoder's weights but for those that training leaves as they are."""
    tensors = encoder_weights(base)
    return {name: tensor for name, tensor in tensors.items() if name not in runners.TIED}


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


_HEAD: dict[str, Any] = {
    "_name_or_path": "headrace-mini",
    "architectures": ["BertForTokenClassification"],
    "id2label": {"0": "LABEL_0", "1": "LABEL_1"},
    "label2id": {"LABEL_0": 0, "LABEL_1": 1},
    "torch_dtype": "float32",
}

_TOKENIZER: dict[str, Any] = {
    "tokenizer_class": "BertTokenizer",
    "do_lower_case": True,
    "model_max_length": 512,
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "mask_token": "[MASK]",
}
