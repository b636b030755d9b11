"""The roofline: LLM-Viewer's own numbers, exact weights, and what adds up."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from headrace import InvalidRequest, ModelUnavailable
from headrace.middleware.cost import (
    FAMILIES,
    Hardware,
    Pass,
    Precision,
    Roofline,
    Row,
    Stage,
    from_config,
    hardware,
    named_in,
    names,
    read_hardware,
    shape_of,
)
from headrace.middleware.cost.work import compressed, plain, planned

LLAMA = Roofline(shape_of("llama-2-7b"), hardware("A6000"))
TABLE_1 = {  # the survey's Table 1: sequence 2048, batch 1, 16 bits
    "prefill": {
        ("q_proj", "k_proj", "v_proj", "o_proj"): (68.7e9, 67.1e6, 1024, 155e12, "compute"),
        ("gate_proj", "up_proj", "down_proj"): (185e9, 152e6, 1215, 155e12, "compute"),
        ("qk_matmul", "sv_matmul"): (34.4e9, 302e6, 113.8, 87.4e12, "memory"),
        ("softmax",): (671e6, 537e6, 1.25, 960e9, "memory"),
        ("norm",): (58.7e6, 33.6e6, 1.75, 1.34e12, "memory"),
        ("add",): (8.39e6, 33.6e6, 0.25, 192e9, "memory"),
    },
    "decode": {
        ("q_proj", "k_proj", "v_proj", "o_proj"): (33.6e6, 33.6e6, 1.0, 768e9, "memory"),
        ("gate_proj", "up_proj", "down_proj"): (90.2e6, 90.2e6, 1.0, 768e9, "memory"),
        ("qk_matmul", "sv_matmul"): (16.8e6, 16.9e6, 0.99, 762e9, "memory"),
        ("softmax",): (328e3, 262e3, 1.25, 960e9, "memory"),
        ("norm",): (28.7e3, 16.4e3, 1.75, 1.34e12, "memory"),
        ("add",): (4.1e3, 16.4e3, 0.25, 192e9, "memory"),
    },
}
CASES = [
    (stage, name, figures)
    for stage, rows in TABLE_1.items()
    for group, figures in rows.items()
    for name in group
]


def row(stage: Stage, name: str) -> Row:
    return next(one for one in stage.rows if one.operator.name == name)


@pytest.mark.parametrize(("stage", "name", "figures"), CASES)
def test_table_1_of_the_survey(
    stage: str, name: str, figures: tuple[float, float, float, float, str]
) -> None:
    found = row(LLAMA.prefill(2048) if stage == "prefill" else LLAMA.decode(2048), name)
    one = found.operator
    said = (one.ops, one.memory, one.intensity, found.performance)
    assert said == pytest.approx(figures[:4], rel=0.006)
    assert found.bound == figures[4]


def test_operations_and_bytes_are_exact() -> None:
    prefill, decode = LLAMA.prefill(2048), LLAMA.decode(2048)
    found = {
        name: (row(stage, name).operator.ops, row(stage, name).operator.memory)
        for stage, name in ((prefill, "q_proj"), (prefill, "gate_proj"), (prefill, "qk_matmul"))
    }
    assert found == {
        "q_proj": (68719476736, 67108864),
        "gate_proj": (184683593728, 152043520),
        "qk_matmul": (34359738368, 301989888),
    }
    assert row(decode, "q_proj").operator.memory == 33570816
    assert row(decode, "qk_matmul").operator.memory == 16916480


def viewer_seconds(roofline: Roofline, stage: Stage) -> float:
    """Return a pass by LLM-Viewer's rules where they are not ours.

    It leaves out the embedding and the last norm, takes the activation of the MLP to be as wide as
    the hidden size, and forgets the head's factor 2 and its batch's activations.
    """
    shape, device, bits = roofline.shape, roofline.device, roofline.precision
    a, w = bits.activations / 8, bits.weights / 8
    elements = shape.hidden_size * stage.step.batch * stage.step.tokens
    ours = sum(row(stage, name).total_seconds for name in ("embed", "mlp_act", "lm_head"))
    ours += row(stage, "norm").seconds
    theirs = shape.num_layers * 3 * elements * a / device.bandwidth
    head = shape.hidden_size * shape.vocab_size
    head_memory = head * w + (shape.hidden_size + shape.vocab_size) * a
    theirs += max(head * stage.step.batch / roofline.peak, head_memory / device.bandwidth)
    return stage.seconds - ours + theirs


@pytest.mark.parametrize(
    ("bits", "prefill", "decode"),
    [
        (Precision(16, 16, 16), 226.88, 18.64),
        (Precision(8, 16, 16), None, 10.03),
        (Precision(4, 16, 16), None, 5.73),
        (Precision(8, 8, 8), 113.43, 9.32),
    ],
)
def test_times_are_those_of_llm_viewer(
    bits: Precision, prefill: float | None, decode: float
) -> None:
    llama = Roofline(LLAMA.shape, LLAMA.device, bits)
    assert viewer_seconds(llama, llama.decode(2048)) * 1e3 == pytest.approx(decode, abs=0.006)
    assert llama.decode(2048).seconds * 1e3 == pytest.approx(decode, abs=0.01)
    if prefill is not None:
        assert viewer_seconds(llama, llama.prefill(2048)) * 1e3 == pytest.approx(prefill, abs=0.006)


@pytest.mark.parametrize(
    ("batch", "milliseconds"), [(1, 18.64), (4, 22.93), (16, 40.10), (64, 108.78), (256, 386.4)]
)
def test_batches_are_those_of_llm_viewer(batch: int, milliseconds: float) -> None:
    stage = LLAMA.decode(2048, batch)
    assert viewer_seconds(LLAMA, stage) * 1e3 == pytest.approx(milliseconds, rel=2e-4)
    assert stage.seconds * 1e3 == pytest.approx(milliseconds, rel=2e-3)


def test_fused_attention_moves_no_scores() -> None:
    fused = Roofline(LLAMA.shape, LLAMA.device, fused=True)
    assert fused.prefill(2048).ops == pytest.approx(LLAMA.prefill(2048).ops)
    unfused = sum(row(LLAMA.prefill(2048), f"{x}_matmul").operator.memory for x in ("qk", "sv"))
    assert row(fused.prefill(2048), "fused_attention").operator.memory < unfused
    assert "softmax" not in {one.operator.name for one in fused.prefill(2048).rows}
    # LLM-Viewer says 18.63: it also writes an output of 2048 x 32 elements twice.
    theirs = fused.decode(2048).seconds + 32 * (2 * 2048 * 32 - 4096) * 2 / 768e9
    assert theirs * 1e3 == pytest.approx(18.63, abs=0.006)


TINY: dict[str, Any] = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "vocab_size": 97,
    "max_position_embeddings": 64,
}
EXTRA: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 48, "n_layer": 3, "n_head": 6, "n_positions": 64},
    "gemma": {"head_dim": 16},
    "gemma2": {"head_dim": 16, "sliding_window": 8},
    "gemma3_text": {"head_dim": 16, "sliding_window": 8},
    "qwen3": {"head_dim": 16},
    "mixtral": {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen3_moe": {
        "head_dim": 16,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 40,
    },
    "phi3": {"pad_token_id": 0},
    "smollm3": {"pad_token_id": 0},
}


def num_parameters(config: dict[str, Any]) -> int:
    """Return what transformers itself makes of a config, without memory for it."""
    import torch
    import transformers

    auto: Any = transformers
    full = auto.AutoConfig.for_model(**config)
    with torch.device("meta"):
        model = auto.AutoModelForCausalLM.from_config(full)
    return sum(one.numel() for one in model.parameters())


@pytest.mark.parametrize("kind", sorted(FAMILIES))
@pytest.mark.parametrize("with_bias", [False, True])
def test_the_weights_are_counted_exactly(kind: str, with_bias: bool) -> None:
    base = {} if kind == "gpt2" else TINY
    biases = {"attention_bias": with_bias, "mlp_bias": with_bias} if kind != "gpt2" else {}
    config = {"model_type": kind, **base, "vocab_size": 97, **EXTRA.get(kind, {}), **biases}
    assert from_config(config).num_weights == num_parameters(config)


@pytest.mark.parametrize("kind", sorted(FAMILIES))
def test_what_a_config_leaves_out_is_as_transformers_has_it(kind: str) -> None:
    experts = {"mixtral", "qwen3_moe"}
    layers = {"n_layer" if kind == "gpt2" else "num_hidden_layers": 2 if kind in experts else 3}
    config = {"model_type": kind, **layers}
    assert from_config(config).num_weights == num_parameters(config)


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("llama-2-7b", 6.738415616),
        ("llama-2-13b", 13.015864320),
        ("llama-3.1-8b", 8.030261248),
        ("llama-3.1-70b", 70.553706496),
    ],
)
def test_well_known_models_have_the_weights_that_their_cards_say(
    name: str, billions: float
) -> None:
    assert shape_of(name).num_weights == round(billions * 1e9)


def test_smollm2_is_read_from_its_own_folder() -> None:
    shape = shape_of("smollm2")
    assert shape.num_weights == 134515008
    assert (shape.num_heads, shape.num_kv_heads, shape.is_tied, shape.bits) == (9, 3, True, 32)


def test_grouped_queries_shrink_the_cache_and_not_the_work() -> None:
    grouped = from_config({"model_type": "llama", **TINY})
    full = from_config({"model_type": "llama", **TINY, "num_key_value_heads": 6})
    assert full.kv_elements(10) == 3 * grouped.kv_elements(10)
    ops = [row(Roofline(s, LLAMA.device).decode(64), "qk_matmul").operator for s in (grouped, full)]
    assert ops[0].ops == ops[1].ops
    assert ops[1].load_kv == 3 * ops[0].load_kv


def test_a_window_bounds_what_its_layers_read() -> None:
    shape = from_config({"model_type": "gemma2", **TINY, **EXTRA["gemma2"]})
    assert shape.sliding == (2, 8)
    near, far = (
        row(Roofline(shape, LLAMA.device).decode(n), "qk_matmul (window)") for n in (8, 64)
    )
    assert near.operator == far.operator
    assert shape.kv_elements(64) == 2 * shape.kv_size * (64 + 2 * 8)


def test_a_mixture_reads_only_the_experts_that_are_chosen() -> None:
    config = {"model_type": "mixtral", **TINY, **EXTRA["mixtral"]}
    found = Roofline(from_config(config), LLAMA.device)
    one, many = (row(found.decode(64, batch), "up_proj").operator for batch in (1, 64))
    assert one.load_weight == pytest.approx(2 * 48 * 80 * 2)
    assert many.load_weight == pytest.approx(4 * 48 * 80 * 2)
    assert one.ops == 2 * 2 * 48 * 80


def test_a_stage_is_its_layers_and_what_runs_once() -> None:
    stage = LLAMA.prefill(512)
    once = sum(row(stage, name).seconds for name in ("embed", "norm", "lm_head"))
    assert stage.seconds == pytest.approx(32 * stage.layer_seconds + once)


def test_a_cached_prefix_is_not_read_again() -> None:
    new = LLAMA.prefill(2048, cached=2000)
    assert new.step == Pass(1, 48, 2048)
    assert new.seconds < 0.15 * LLAMA.prefill(2048).seconds


@pytest.mark.parametrize("output", [1, 2, 5, 9, 10, 300])
def test_decode_is_the_sum_of_its_steps(output: int) -> None:
    steps = sum(LLAMA.decode(700 + i).seconds for i in range(1, output))
    assert LLAMA.decode_seconds(700, output) == pytest.approx(steps, rel=1e-6)


def test_the_largest_batch_is_the_last_that_fits() -> None:
    batch = LLAMA.largest_batch(2048, 256)
    prefill = LLAMA.prefill(2048).activations

    def held(rows: int) -> float:
        return LLAMA.memory(LLAMA.decode(2304, rows)).total + prefill

    assert held(batch) <= 0.9 * 48e9 < held(batch + 1)
    assert Roofline(LLAMA.shape, hardware("L4")).largest_batch(8000, 8000) == 0


def test_what_compression_and_planning_save() -> None:
    whole, half = plain(LLAMA, 2048, 256), compressed(LLAMA, 2048, 256, 1, 0.5)
    parts = planned(LLAMA, 2048, 256, 1, 4)
    assert half.prefill < 0.5 * whole.prefill
    assert half.kv / whole.kv == pytest.approx((1024 + 256) / (2048 + 256))
    assert half.largest_batch > whole.largest_batch
    assert whole.prefill < parts.prefill < 1.2 * whole.prefill
    assert 0.25 * whole.decode < parts.decode < 0.6 * whole.decode


@pytest.mark.parametrize("name", names())
def test_every_device_has_a_source_and_plausible_figures(name: str) -> None:
    one = hardware(name)
    assert one.source
    assert 10e9 < one.bandwidth < 10e12
    assert one.fp32 <= one.fp16 <= (one.int8 or math.inf)


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("NVIDIA H200", "H200"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA A100-PCIE-40GB", "A100-40G"),
        ("NVIDIA RTX A6000", "A6000"),
        ("NVIDIA L40S", "L40S"),
        ("Tesla T4", None),
    ],
)
def test_a_driver_name_is_looked_up_by_whole_words(said: str, found: str | None) -> None:
    one = named_in(said)
    assert (one and one.name) == found


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_a_file_adds_devices(tmp_path: Path, suffix: str) -> None:
    figures = {"bandwidth": 1e12, "fp16": 2e14, "fp32": 5e13, "memory": 32e9}
    text = json.dumps({"mine": figures})
    if suffix == ".toml":
        text = "[mine]\n" + "".join(f"{key} = {value}\n" for key, value in figures.items())
    (tmp_path / f"devices{suffix}").write_text(text)
    extra = read_hardware(tmp_path / f"devices{suffix}")
    assert hardware("MINE", extra) == Hardware("mine", 1e12, 2e14, 5e13, 32e9)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no hardware"),
        ("[mine", "no hardware file"),
        ("mine = 3", "table of figures"),
        ("[mine]\nbandwidth = 1", "lacks fp16"),
        ("[mine]\nbandwith = 1", "'bandwith'"),
        ("[mine]\nbandwidth = -1\nfp16 = 1\nfp32 = 1\nmemory = 1", "bandwidth must be a positive"),
        ("[mine]\nbandwidth = nan\nfp16 = 1\nfp32 = 1\nmemory = 1", "got nan"),
        ("[mine]\naliases = 1", "aliases is a list"),
    ],
)
def test_a_wrong_file_is_told_in_a_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "devices.toml").write_text(text)
    with pytest.raises(InvalidRequest, match=said) as error:
        read_hardware(tmp_path / "devices.toml")
    assert "\n" not in str(error.value)


def test_wrong_arguments_are_told() -> None:
    with pytest.raises(InvalidRequest, match="no hardware 'A7000'; known: A6000"):
        hardware("A7000")
    with pytest.raises(InvalidRequest, match="at least 1 core"):
        hardware("cpu:0")
    with pytest.raises(InvalidRequest, match="batch must be"):
        LLAMA.decode(10, 0)
    with pytest.raises(InvalidRequest, match="tokens must be"):
        LLAMA.prefill(10, cached=10)
    with pytest.raises(InvalidRequest, match="bits of kv"):
        Precision(kv=0)
    with pytest.raises(InvalidRequest, match=r"rate must be in \(0, 1\], got 0"):
        compressed(LLAMA, 100, 10, 1, 0)
    with pytest.raises(InvalidRequest, match="parts must be from 2 to the 10"):
        planned(LLAMA, 100, 10, 1, 11)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"model_type": "mamba"}, "type 'mamba'; known: gemma"),
        ({}, "type None"),
        ({"model_type": "llama", **TINY, "hidden_size": "big"}, "hidden_size must be"),
        ({"model_type": "llama", **TINY, "hidden_size": 0}, "got 0"),
        (
            {"model_type": "mixtral", **TINY, **EXTRA["mixtral"], "num_local_experts": "4"},
            "got '4'",
        ),
        (
            {"model_type": "qwen3_moe", **TINY, **EXTRA["qwen3_moe"], "mlp_only_layers": [0]},
            "dense",
        ),
    ],
)
def test_a_model_that_is_counted_differently_is_refused(config: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidRequest, match=said):
        from_config(config)


def test_a_config_file_is_enough_and_its_bits_are_read(tmp_path: Path) -> None:
    config = {"model_type": "llama", **TINY, "quantization_config": {"bits": 4}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert shape_of(str(tmp_path)).bits == 4
    assert shape_of(str(tmp_path / "config.json")).num_layers == 3
    (tmp_path / "config.json").write_text("[]")
    with pytest.raises(InvalidRequest, match="no JSON object"):
        shape_of(str(tmp_path))


def test_a_model_that_is_nowhere_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(
        ModelUnavailable, match=r"no config of 'nobody/nothing'.*llama-2-7b"
    ) as error:
        shape_of("nobody/nothing")
    assert "\n" not in str(error.value)
