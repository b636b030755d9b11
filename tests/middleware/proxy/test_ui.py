"""The page in a real browser, where there is one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
from engine.proxied import LEXICAL, Start, history, until
from engine.upstream import Upstream

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--dump-dom"),
    "--virtual-time-budget=3000",
]


def shown(url: str, folder: Path) -> str:
    """Return the page as it is after its script has run."""
    browser = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    if browser is None:
        pytest.skip("no Chromium here")
    line = [browser, *FLAGS, f"--user-data-dir={folder}", url]
    return subprocess.run(line, capture_output=True, text=True, timeout=300, check=True).stdout


@pytest.mark.slow
def test_a_browser_shows_what_was_saved(
    server: Upstream, start: Start, http: httpx.Client, tmp_path: Path
) -> None:
    proxy = start(LEXICAL)
    base = proxy.url.removesuffix("/v1")
    answer = http.post(f"{proxy.url}/chat/completions", json=history(model="<b>bold</b>"))
    until(lambda: http.get(f"{base}/ui/data").json()["requests"] == 1)
    saved = f"{int(answer.headers['x-headrace-tokens-saved']):,}"
    page = shown(f"{base}/ui", tmp_path / "empty")
    assert f'<b id="saved">{saved}</b>' in page
    assert '<b id="requests">1</b>' in page
    assert "<td>changed</td>" in page
    assert "&lt;b&gt;bold&lt;/b&gt;" in page  # a name is shown, never run
    assert '<p id="note" role="status"></p>' in page


@pytest.mark.slow
def test_a_browser_is_asked_for_a_key(
    server: Upstream, start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_KEYS", "hr-ann")
    proxy = start('keys_env = "OUR_KEYS"\n')
    page = shown(proxy.url.removesuffix("/v1") + "/ui", tmp_path / "empty")
    assert "This proxy wants a key." in page
    assert '<form id="login">' in page
