"""Two small checkpoints in LLMLingua-2's format, the same on every machine.

Needs torch, transformers and tokenizers only, so that the recorder can use it beside the
reference. The reference tells the family from the folder's name.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

BERT = "bert-base-multilingual-cased-parity"
XLM = "xlm-roberta-large-parity"
_SPECIAL = ("<s>", "<pad>", "</s>", "<unk>")
_WORDS = 1500


def bert(source: Path, folder: Path) -> Path:
    """Write all-MiniLM-L6-v2's encoder (in ``source``) with a head drawn once."""
    import torch
    from transformers import AutoTokenizer, BertForTokenClassification

    path = folder / BERT
    model: Any = cast("Any", BertForTokenClassification).from_pretrained(str(source), num_labels=2)
    generator = torch.Generator().manual_seed(7)
    model.classifier.weight.data = torch.randn(2, 384, generator=generator)
    model.classifier.bias.data.zero_()
    model.save_pretrained(path)
    cast("Any", AutoTokenizer).from_pretrained(str(source)).save_pretrained(path)
    return path


def xlm_roberta(texts: Iterable[str], folder: Path) -> Path:
    """Write a tiny XLM-RoBERTa, drawn once, with a Unigram vocabulary of the texts' words."""
    import torch
    from transformers import XLMRobertaConfig, XLMRobertaForTokenClassification

    path = folder / XLM
    path.mkdir(parents=True, exist_ok=True)
    size = _tokenizer(texts, path)
    config: Any = cast("Any", XLMRobertaConfig)(
        vocab_size=size,
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=128,
        max_position_embeddings=514,
        type_vocab_size=1,
        pad_token_id=1,
        num_labels=2,
    )
    model: Any = XLMRobertaForTokenClassification(config)
    generator = torch.Generator().manual_seed(11)
    for name, parameter in sorted(model.named_parameters()):
        drawn = torch.randn(parameter.shape, generator=generator)
        if "LayerNorm.weight" in name:
            drawn = 1 + 0.1 * drawn
        elif "embeddings" not in name:
            drawn = 0.2 * drawn
        parameter.data = drawn
    model.save_pretrained(path)
    return path


def _tokenizer(texts: Iterable[str], path: Path) -> int:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

    words = Counter(word for text in texts for word in text.split())
    common = sorted(words, key=lambda word: (-words[word], word))[:_WORDS]
    pieces = ["▁", *(f"▁{word}" for word in common)]
    pieces += [word[:n] for word in common for n in (2, 3) if len(word) > n]
    pieces += sorted({char for word in words for char in word if ord(char) < 0x2000})
    listed = [*_SPECIAL, *dict.fromkeys(pieces), "<mask>"]
    vocabulary = [(piece, 0.0 if i < 4 else -4.0 - i / 400) for i, piece in enumerate(listed)]
    tokenizer: Any = Tokenizer(models.Unigram(vocabulary, unk_id=3, byte_fallback=False))
    made: Any = tokenizer
    made.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace("\n", " "), normalizers.Replace("  ", " ")]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    made.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    made.add_special_tokens([*_SPECIAL, "<mask>"])
    made.save(str(path / "tokenizer.json"))
    names = {"bos": "<s>", "eos": "</s>", "cls": "<s>", "sep": "</s>"}
    names |= {"unk": "<unk>", "pad": "<pad>", "mask": "<mask>"}
    settings: dict[str, Any] = {f"{name}_token": token for name, token in names.items()}
    settings |= {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 512}
    (path / "tokenizer_config.json").write_text(json.dumps(settings))
    return len(listed)
