"""``headrace roofline`` as people call it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from headrace.middleware.cli import app
from headrace.middleware.errors import HeadraceError

LLAMA = ["roofline", "--model", "llama-2-7b", "--hardware", "A6000"]


def run(*arguments: str) -> str:
    done = CliRunner().invoke(app, [*LLAMA, *arguments])
    if done.exception is not None:
        raise done.exception
    return done.stdout


def test_it_prints_the_tables_of_both_stages_and_what_would_save_what() -> None:
    out = run("--prompt", "2048")
    lines = [re.split(r"\s{2,}", line.strip()) for line in out.splitlines()]
    assert ["q_proj", "32", "68.7G", "67.1M", "1024", "155T", "444 us", "compute"] in lines
    assert ["q_proj", "32", "33.6M", "33.6M", "1.00", "768G", "43.7 us", "memory"] in lines
    assert "the largest that fits is 23" in out
    assert {"as it is", "compressed to 0.5", "in 4 parts"} <= {line[0] for line in lines}


def test_json_has_every_figure() -> None:
    found = json.loads(run("--json", "--w-bits", "4", "--kv-bits", "8", "--fused", "--batch", "2"))
    assert found["model"]["num_weights"] == 6738415616
    assert found["precision"] == {"weights": 4, "activations": 16, "kv": 8}
    assert found["decode"]["held"]["weights"] == 6738415616 / 2
    assert found["decode"]["held"]["kv"] == 2 * 2048 * 4096 * 32 * 2
    assert "fused_attention" in {one["name"] for one in found["prefill"]["operators"]}
    total = sum(one["seconds"] * one["count"] for one in found["prefill"]["operators"])
    assert total == pytest.approx(found["prefill"]["seconds"])
    assert [one["batch"] for one in found["requests"]] == [2, 2, 2]


def test_the_page_has_three_charts_and_fetches_nothing(tmp_path: Path) -> None:
    path = tmp_path / "roofline.html"
    run("--html", str(path))
    page = path.read_text()
    charts = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(charts) == 3
    for chart in charts:
        tree = ElementTree.fromstring(chart)
        assert tree.findall("polyline")
        numbers = [
            float(n)
            for n in re.findall(r"-?\d+\.\d+", "".join(re.findall(r'points="([^"]*)"', chart)))
        ]
        assert all(0 <= n <= 640 for n in numbers)
    assert "decode qk_matmul" in charts[0]
    assert not re.search(r"<script|src=|https?://", page)


def test_a_device_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('["My & Box"]\nbandwidth = 1e12\nfp16 = 1e14\nfp32 = 5e13\nmemory = 24e9\n')
    page = tmp_path / "page.html"
    own = ["--hardware", "my & box", "--hardware-file", str(file), "--html", str(page)]
    assert "My & Box: 100T OPs/s" in run(*own)
    assert "on My &amp; Box" in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--hardware", "abacus"], "no hardware 'abacus'"),
        (["--rate", "0"], r"rate must be in \(0, 1\], got 0"),
        (["--hardware-file", "nowhere.toml"], "cannot read the hardware file nowhere.toml"),
        (["--model", "./nowhere"], "nowhere"),
    ],
)
def test_what_is_wrong_is_told_in_a_line(arguments: list[str], said: str) -> None:
    with pytest.raises(HeadraceError, match=said) as error:
        run(*arguments)
    assert "\n" not in str(error.value)


def test_a_quantised_config_sets_the_bits_of_the_weights(tmp_path: Path) -> None:
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    counts = {"num_attention_heads": 4, "vocab_size": 100}
    config = {"model_type": "llama", **sizes, **counts, "quantization_config": {"bits": 4}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = json.loads(run("--model", str(tmp_path), "--json"))
    assert found["precision"] == {"weights": 4, "activations": 16, "kv": 16}


def test_an_answer_too_short_for_parts_has_no_planned_row() -> None:
    assert "parts" not in run("--generate", "3").splitlines()[-1]
