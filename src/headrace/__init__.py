"""Prompt and output optimisation in front of a language model's engine.

The code lives in the folders at the top of the repository; ``headrace.X`` is ``./X``.
"""

from importlib.metadata import version as _version

__version__ = _version("headrace")

__all__: list[str] = []
