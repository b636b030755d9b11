"""Training of headrace-mini, the encoder that scores tokens and ranks passages.

One command trains it from all-MiniLM-L6-v2, resumes where it stopped, and writes a folder:

    python -m headrace.compressors.training --data DATA --out RUN

``pairs`` fine-tunes the shipped weights on your own questions and passages; ``lingua`` makes labels
with a language model that deletes words (LLMLingua-2's recipe). See docs/headrace-mini.md.
"""

from __future__ import annotations
