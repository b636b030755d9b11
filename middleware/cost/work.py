"""A whole request on a device: as it is, compressed, and planned."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import InvalidRequest
from .roofline import Roofline

PLAN_TOKENS = 12  # a part's line in a plan, and what its own prompt adds


@dataclass(frozen=True, slots=True)
class Work:
    """``batch`` requests from their prompts to their last tokens.

    ``prefill`` and ``decode`` are in seconds, ``kv`` is in bytes at the longest; ``largest_batch``
    is how many such requests fit into the device.
    """

    name: str
    prompt: int
    output: int
    batch: int
    prefill: float
    decode: float
    kv: float
    largest_batch: int

    @property
    def seconds(self) -> float:
        """From first to last."""
        return self.prefill + self.decode

    @property
    def tokens_per_second(self) -> float:
        """Tokens written a second by all rows together, the prefill's time included."""
        return self.batch * self.output / self.seconds


def plain(roofline: Roofline, prompt: int, output: int, batch: int = 1) -> Work:
    """Return the requests as they are."""
    return _work("as it is", roofline, prompt, output, batch)


def compressed(roofline: Roofline, prompt: int, output: int, batch: int, rate: float) -> Work:
    """Return the requests with ``rate`` of their prompts' tokens; the compressor's time is extra.

    Raises InvalidRequest for a rate outside (0, 1].
    """
    if not 0 < rate <= 1:
        raise InvalidRequest(f"rate must be in (0, 1], got {rate!r}")
    short = max(1, math.floor(rate * prompt))
    return _work(f"compressed to {rate:g}", roofline, short, output, batch)


def planned(roofline: Roofline, prompt: int, output: int, batch: int, parts: int) -> Work:
    """Return the requests with answers in ``parts`` of equal length, written side by side.

    The plan takes 12 tokens a part. The parts share the prompt's KV cache; each reads 12 tokens of
    its own. Raises InvalidRequest for fewer than 2 parts, or more than there are tokens.
    """
    if not 2 <= parts <= output:
        raise InvalidRequest(f"parts must be from 2 to the {output} output tokens, got {parts}")
    rows, each = batch * parts, math.ceil(output / parts)
    start = prompt + PLAN_TOKENS
    prefill = roofline.prefill(prompt, batch).seconds
    prefill += roofline.prefill(start, rows, cached=prompt).seconds
    decode = roofline.decode_seconds(prompt, parts * PLAN_TOKENS, batch)
    decode += roofline.decode_seconds(start, each, rows)
    own = roofline.kv_bytes(start + each) - roofline.kv_bytes(prompt)
    kv = batch * (roofline.kv_bytes(prompt) + parts * own)
    whole = roofline.largest_batch(prompt, parts * (PLAN_TOKENS + each))
    return Work(f"in {parts} parts", prompt, output, batch, prefill, decode, kv, whole)


def _work(name: str, roofline: Roofline, prompt: int, output: int, batch: int) -> Work:
    return Work(
        name,
        prompt,
        output,
        batch,
        roofline.prefill(prompt, batch).seconds,
        roofline.decode_seconds(prompt, output, batch),
        batch * roofline.kv_bytes(prompt + output),
        roofline.largest_batch(prompt, output),
    )
