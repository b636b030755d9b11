"""Constraints as automata over a tokenizer's tokens: the names that the decode loop uses."""

from __future__ import annotations

from .compiler import Compiler, EngineName
from .engines.base import Matcher
from .masks import apply_mask, forced_token, unpack

__all__ = ["Compiler", "EngineName", "Matcher", "apply_mask", "forced_token", "unpack"]
