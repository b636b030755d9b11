"""Record what llmlingua 0.2.2 keeps, for tests/parity to compare with.

    PEER benchmarks/parity_record.py --minilm FOLDER

PEER is Python of an environment of its own, in which headrace need not be installed:

    python -m venv peer && peer/bin/pip install torch llmlingua==0.2.2 llama-index-core

(llama-index-core carries the tiktoken file that the peer would download.) FOLDER holds
all-MiniLM-L6-v2; ``headrace.middleware.models.resolve("minilm")`` names it. Writes
tests/parity/recorded.json: a digest a case and family, the signatures of the peer's methods, and
the cl100k tokens of every word that is not one token, so that the test needs no tiktoken.
"""

from __future__ import annotations

import argparse
import copy  # the peer changes its own default dictionaries
import importlib.metadata
import inspect
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
METHODS = (
    "__init__",
    "init_llmlingua2",
    "compress_prompt",
    "compress_prompt_llmlingua2",
    "structured_compress_prompt",
    "compress_json",
    "recover",
    "get_rank_results",
)
WORD_SEP, LABEL_SEP = "\x1e", "\x1f"


def signatures(kind: Any) -> dict[str, list[list[Any]]]:
    """Return (name, default) of every parameter; a required one has the name alone."""
    found: dict[str, list[list[Any]]] = {}
    for name in METHODS:
        parameters = list(inspect.signature(getattr(kind, name)).parameters.values())[1:]
        found[name] = [
            [p.name] if p.default is inspect.Parameter.empty else [p.name, copy.deepcopy(p.default)]
            for p in parameters
        ]
    return found


def record(peer: Any, cases: list[Any], digest: Any) -> list[str]:
    """Return the digest of every case; "error" where the peer raises."""
    found: list[str] = []
    for contexts, options in cases:
        try:
            result = peer.compress_prompt_llmlingua2(
                list(contexts),
                return_word_label=True,
                word_sep=WORD_SEP,
                label_sep=LABEL_SEP,
                **options,
            )
        except (ValueError, IndexError, ZeroDivisionError):
            found.append("error")
            continue
        lines = result["fn_labeled_original_prompt"].split(WORD_SEP)
        pairs = [line.rpartition(LABEL_SEP) for line in lines if line]
        words = [(word, label == "1") for word, _, label in pairs]
        if not options.get("use_token_level_filter", True):
            words = []  # the peer splits words another way there
        found.append(digest(words, result["compressed_prompt"]))
    return found


def main() -> None:
    """Write the record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minilm", type=Path, required=True)
    options = parser.parse_args()
    import llama_index.core

    cache = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(cache)
    sys.path.insert(0, str(ROOT / "tests"))
    import torch
    from llmlingua import PromptCompressor  # type: ignore[import-not-found]
    from parity.cases import cases, digest, texts
    from parity.checkpoints import bert, xlm_roberta

    torch.set_num_threads(1)
    versions = {name: importlib.metadata.version(name) for name in ("llmlingua", "transformers")}
    recorded: dict[str, Any] = {"versions": versions, "signatures": signatures(PromptCompressor)}
    counts: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as folder:
        paths = {
            "bert": bert(options.minilm, Path(folder)),
            "xlm-roberta": xlm_roberta(texts(), Path(folder)),
        }
        for family, path in paths.items():
            peer = PromptCompressor(str(path), use_llmlingua2=True, device_map="cpu")
            encode = peer.oai_tokenizer.encode

            def counted(text: str, encode: Any = encode, **_: Any) -> list[int]:
                tokens: list[int] = encode(text, disallowed_special=())
                if len(tokens) != 1:
                    counts[text] = len(tokens)
                return tokens

            peer.oai_tokenizer = type("Counting", (), {"encode": staticmethod(counted)})()
            recorded[family] = record(peer, cases(), digest)
            print(f"{family}: {len(recorded[family])} cases,", recorded[family].count("error"))
    recorded["tokens"] = {text: n for text, n in sorted(counts.items()) if len(text) < 60}
    long = {text: n for text, n in counts.items() if len(text) >= 60}
    from hashlib import sha256

    recorded["tokens"] |= {
        sha256(text.encode("utf-8")).hexdigest()[:12]: n for text, n in sorted(long.items())
    }
    target = ROOT / "tests" / "parity" / "recorded.json"
    target.write_text(json.dumps(recorded, ensure_ascii=False, separators=(",", ":")), "utf-8")
    print(f"{target.name}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
