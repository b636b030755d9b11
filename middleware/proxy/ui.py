"""The page at /ui: one file, nothing from elsewhere."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def page() -> str:
    """Return the page's HTML. It asks /ui/data for what it shows."""
    return files(__package__ or "").joinpath("data/ui.html").read_text("utf-8")
