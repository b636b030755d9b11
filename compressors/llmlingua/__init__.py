"""LLMLingua's interface: ``from headrace.compressors.llmlingua import PromptCompressor``.

>>> compressor = PromptCompressor("lexical")
>>> result = compressor.compress_prompt("The meeting was long. The total is 12 EUR.", rate=0.6)
>>> "12 EUR" in result["compressed_prompt"], sorted(result)[:2]
(True, ['compressed_prompt', 'compressed_prompt_list'])
"""

from __future__ import annotations

from .prompt_compressor import PromptCompressor

__all__ = ["PromptCompressor"]
