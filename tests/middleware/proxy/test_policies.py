"""A policy that cannot be is refused when the file is read, not at each request."""

from __future__ import annotations

import tomllib
from pathlib import Path

import httpx
import pytest
from engine.proxied import LEXICAL, Start, history
from engine.upstream import Upstream

from headrace import InvalidRequest
from headrace.middleware.proxy.config import read_config
from headrace.middleware.proxy.policies import Policy

SCORERS = "auto, lexical, mini, sentences, llmlingua"
RERANKERS = "auto, bm25, bi-encoder, mini, perplexity"
PLANS = "auto, map, template, skeleton, graph, decide, sot, off"
ROLES = "system, developer, user, assistant, tool, function"
HERE = "the name or folder of a model on this machine"


def read(lines: str) -> Policy:
    return read_config(tomllib.loads(f'backend = "http://h"\n[models."a*"]\n{lines}')).models["a*"]


@pytest.mark.parametrize(
    ("lines", "what", "allowed"),
    [
        ('compressor = "lexcial"', "no compressor 'lexcial'", SCORERS),
        ('compressor = "bm25"', "no compressor 'bm25'", SCORERS),
        ('compressor = "./no/such/model"', "no compressor './no/such/model'", HERE),
        ('compressor = "lexical:x"', "no compressor 'lexical:x'", SCORERS),
        ('compressor = "sentences:nothing"', "no compressor 'nothing'", RERANKERS),
        ('compressor = "llmlingua:nothing"', "no compressor 'nothing'", HERE),
        ('compressor = ""', "no compressor ''", SCORERS),
        ("compressor = 3", "compressor is a text, got 3", ""),
        ('tokenizer = "nope"', "no tokenizer 'nope'", HERE),
        ('tokenizer = "/etc/hostname"', "no tokenizer '/etc/hostname'", HERE),
        ('method = "bm52"', "no method 'bm52'", RERANKERS),
        ('method = "perplexity:nothing"', "no method 'nothing'", HERE),
        ('method = "a\\nb"', r"no method 'a\nb'", RERANKERS),
        ('plan = "skeletton"', "got 'skeletton'", f"plan is one of {PLANS}"),
        ("plan = true", "got true", f"plan is one of {PLANS}"),
        ("rates = { tooll = 0.3 }", "rates has no role 'tooll'", ROLES),
        ("rates = 0.3", "rates is a table such as { tool = 0.3 }, got 0.3", ""),
        ('rates = { tool = "a" }', "rates.tool is a number from 0 to 1, got 'a'", ""),
        ("rates = { tool = true }", "rates.tool is a number from 0 to 1, got true", ""),
        ("rates = { tool = { old = 0.3 } }", "age in rates.tool is a whole number from 0", "old"),
        ("rates = { tool = { 4 = 2 } }", "rates.tool.4 is a number from 0 to 1, got 2", ""),
        ("rate = [1]", "rate is a number from 0 to 1, got [1]", ""),
        ("rate = nan", "rate is a number from 0 to 1, got nan", ""),
        ("rate = 1979-05-27", 'rate is a number from 0 to 1, got "1979-05-27"', ""),
        ("threshold = 5", "threshold is a number from 0 to 1, got 5", ""),
        ("quality = -1", "quality is a number from 0 to 1, got -1", ""),
        ("tools = 3", "tools is a number from 0 to 1, got 3", ""),
        ("tools = { f = 1 }", 'tools is a number from 0 to 1, got {"f": 1}', ""),
        ("target_tokens = 5.5", "target_tokens is a whole number from 0 on, got 5.5", ""),
        ("target_tokens = -1", "target_tokens is a whole number from 0 on, got -1", ""),
        ("every = 0", "every is a whole number from 1 on, got 0", ""),
        ("top_k = true", "top_k is a whole number from 1 on, got true", ""),
        ('keep = "x"', "keep is a list of texts, got 'x'", ""),
        ("keep = [3]", "keep is a list of texts, got [3]", ""),
        ('keep = ["("]', "keep pattern '('", ""),
        ('last_user = "x"', 'last_user is "keep" or "context", got \'x\'', ""),
        ('off = "yes"', "off is true or false, got 'yes'", ""),
        ("constrain = 1", "constrain is true or false, got 1", ""),
        ("rate = 0", "rate=0 leaves nothing of a message", "give more than 0"),
        ("stable = 3", "stable is true or false, got 3", ""),
        ("question = 3", "question is a text, got 3", ""),
        ("documents = [3]", "a document is a text or an object, got 3", ""),
        ("rate = 0.5\nthreshold = 0.5", "give exactly one of rate", "got rate=0.5, threshold=0.5"),
    ],
)
def test_a_policy_that_cannot_be_is_one_line(lines: str, what: str, allowed: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        read(lines)
    said = str(error.value)
    assert said.startswith('[models."a*"]: ')
    assert what in said
    assert allowed in said
    assert "\n" not in said


def test_a_models_kind_is_read_from_its_folder(damaged: str) -> None:
    assert read(f'compressor = "{damaged}"').compressor == damaged  # its weights are not read
    config = Path(damaged, "config.json")
    config.write_text(config.read_text().replace("BertForTokenClassification", "BertModel"))
    with pytest.raises(InvalidRequest, match=r"compressor: .* is BertModel, no token classifier"):
        read(f'compressor = "{damaged}/"')  # spelled otherwise: what was read is remembered
    Path(damaged, "tokenizer.json").write_text("{")
    with pytest.raises(InvalidRequest, match=r"tokenizer .* cannot be read"):
        read(f'tokenizer = "{damaged}"')


@pytest.mark.parametrize(
    "lines",
    [
        'compressor = "sentences:bm25"',
        'compressor = "sentences:mini"',
        'method = "bi-encoder"',
        "rates = { developer = 0.3, tool = { 0 = 0.5, 4 = 0.1 } }",
        "target_tokens = 1",
        "target_tokens = 9\nstable = true",
        'rate = 0\nkeep = ["mill"]',
        "rate = 1",
        'off = true\nplan = "auto"',
    ],
)
def test_what_can_be_is_taken(lines: str) -> None:
    assert read(lines) == Policy.of(tomllib.loads(lines))


def test_what_the_hub_may_have_is_taken_unless_the_network_is_forbidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    for key in ("compressor", "method", "tokenizer"):
        lines = f'{key} = "nobody/has-this"'
        monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
        assert getattr(read(lines), key) == "nobody/has-this"
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        with pytest.raises(InvalidRequest, match=f"no {key} 'nobody/has-this'"):
            read(lines)


def test_a_name_of_a_policy_is_one_line_too() -> None:
    with pytest.raises(InvalidRequest) as error:
        read_config({"models": {"a\nb": {"rate": 2}}}, "http://h")
    assert str(error.value).startswith(r'[models."a\nb"]: rate')


@pytest.mark.parametrize(
    "lines",
    ['rate = 0.5\ncompressor = "lexcial"', "rates = { tooll = 1 }", 'plan = "x"', "rate = [1]"],
)
def test_a_policy_that_cannot_be_keeps_the_old_one(
    lines: str, server: Upstream, start: Start, http: httpx.Client
) -> None:
    proxy = start(LEXICAL)
    url = f"{proxy.url}/chat/completions"
    proxy.file.write_text(f'backend = "{server.url}"\n[models."*"]\n{lines}\n')
    for _ in range(2):
        assert http.post(url, json=history()).headers["x-headrace-decision"] == "changed"
    base = proxy.url.removesuffix("/v1")
    said = proxy.proxy.live.error
    assert said is not None
    assert said.startswith(f'{proxy.file}: [models."*"]: ')
    assert http.get(f"{base}/ready").json()["config"] == said
    assert http.get(f"{base}/ui/data").json()["config_error"] == said
    assert proxy.metric("config_broken") == 1
    assert proxy.metric("config_reloads", result="failed") == 1


@pytest.mark.parametrize("raw", [b"", b"\xff\xfe", b"[" * 50_000, b"models = 3", b'rate = "'])
def test_a_file_cut_anywhere_keeps_the_old_settings(
    raw: bytes, server: Upstream, start: Start, http: httpx.Client
) -> None:
    proxy = start(LEXICAL)
    proxy.file.write_bytes(raw)
    answer = http.post(f"{proxy.url}/chat/completions", json=history())
    assert answer.headers["x-headrace-decision"] == "changed"
    assert proxy.metric("config_broken") == 1
    proxy.file.write_text(f'backend = "{server.url}"\n{LEXICAL}')
    assert http.post(f"{proxy.url}/chat/completions", json=history()).status_code == 200
    assert proxy.metric("config_broken") == 0


def test_one_requests_options_are_held_to_the_same(
    server: Upstream, start: Start, http: httpx.Client
) -> None:
    url = f"{start(LEXICAL).url}/chat/completions"
    for options, words in (
        ({"rates": {"tooll": 0.3}}, "rates has no role 'tooll'; did you mean 'tool'?"),
        ({"rate": [1]}, "rate is a number from 0 to 1, got [1]"),
        ({"plan": {}}, "plan is one of auto, map"),
        ({"tools": "all"}, "tools is a number from 0 to 1, got 'all'"),
    ):
        refused = http.post(url, json=history(headrace=options))
        assert refused.status_code == 400
        assert words in refused.json()["error"]["message"]
    assert not server.seen
