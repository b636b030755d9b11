"""The site's first page is the README; links in it and in the pages are the repository's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)#]*)[^)]*\)")
OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./)+(?!README\.md)[^)]*\)")
"""Links to files that are in the repository and not on the site: their text stays."""


def on_files(files: Any, config: Any) -> Any:
    """Add the README as index.md."""
    from mkdocs.structure.files import File

    text = Path(config.config_file_path).with_name("README.md").read_text("utf-8")
    text = re.sub(r"(\]\(|src=\")docs/", r"\1", text)
    there = {file.src_uri for file in files}
    text = LINK.sub(lambda m: m[0] if m[2] in there or m[2].startswith("http") else m[1], text)
    files.append(File.generated(config, "index.md", content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Return a page with its links as the site has them."""
    return OUTSIDE.sub(r"\1", markdown.replace("](../README.md", "](index.md"))
