"""Where models and prompts come from."""

import json
import re
from pathlib import Path

import jobs
import pytest
import torch
import typed
from datasets import Dataset
from stage_runs import TASK, TEMPLATE
from transformers import GenerationConfig

from encore import worlds
from encore.data import prompts
from encore.data.forms import plain
from encore.errors import UserError
from encore.forecast import model_size
from encore.models import experts, language_model, lora
from encore.recipe.machine import FolderModel, HubModel
from encore.recipe.shape import Shape
from encore.runtime import sentinel

TOKENIZER = worlds.tokenizer([worlds.make(TASK)])
SHAPE = {"hidden_size": 64, "layers": 2, "head_dim": 32}


def test_shape_and_seed():
    model = language_model.build(Shape(**SHAPE, kv_heads=1, max_position_embeddings=96), TOKENIZER, 0)
    config = model.config
    assert (config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads) == (2, 2, 1)
    assert config.intermediate_size == 256
    assert config.max_position_embeddings == 96
    assert not config.tie_word_embeddings
    assert config.eos_token_id == TOKENIZER.eos_token_id != config.pad_token_id
    assert (
        model.num_parameters()
        == language_model.build(Shape(**SHAPE, kv_heads=1), TOKENIZER, 1).num_parameters()
    )


def test_a_mixture_of_experts_has_the_experts_asked_for():
    mixture = {"experts": 4, "visited": 2, "expert_size": 16}
    model = language_model.build(Shape(**SHAPE, **mixture), TOKENIZER, 0)
    assert model.config.model_type == "qwen3_moe"
    assert (model.config.num_experts, model.config.num_experts_per_tok) == (4, 2)
    assert model.config.norm_topk_prob
    for layer in model.model.layers:
        assert layer.mlp.experts.down_proj.shape == (4, 64, 16)
        assert layer.mlp.gate.weight.shape == (4, 64)


def test_a_token_is_not_multiplied_with_the_experts_it_passes_by():
    model = language_model.build(Shape(**SHAPE, experts=4, visited=1, expert_size=16), TOKENIZER, 0)
    assert experts.idle(model) == 2 * 3 * 3 * 16 * 64  # of each layer three experts: gate, up and down
    assert experts.idle(language_model.build(Shape(**SHAPE), TOKENIZER, 0)) == 0


def test_a_mixture_of_experts_is_planned_as_one():
    mixture = {"experts": 4, "visited": 1, "expert_size": 16}
    planned = model_size.of_model(Shape.model_validate({**SHAPE, **mixture}))
    idle = 2 * 3 * 3 * 16 * 64  # of each layer three experts: gate, up and down
    assert (planned.experts, planned.visited) == (4, 1)
    assert planned.active == planned.parameters - planned.embedding - idle


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"expert": 3}, 'model.expert: unknown key; did you mean "experts"?'),
        ({"experts": 4, "visited": 2}, "model.expert_size: missing"),
        ({"visited": 5, "experts": 4, "expert_size": 16}, "model.visited: expected at most experts = 4"),
        ({"layer": 3}, 'model.layer: unknown key; did you mean "layers"?'),
        ({"head_dim": 16}, "model.head_dim: expected one of"),
        ({"kv_heads": 3}, "model.kv_heads: 3 does not divide"),
    ],
)
def test_shape_mistakes(change, says):
    with pytest.raises(UserError, match=re.escape(says)):
        jobs.stage("pretrain", {"model": {**SHAPE, **change}}).check_rules()
    with pytest.raises(UserError, match=r"model\.layers: missing"):
        jobs.stage("pretrain", {"model": {"hidden_size": 64}})


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "final"
    model = language_model.build(Shape(**SHAPE), TOKENIZER, 0)
    language_model.save(model, TOKENIZER, folder, model.generation_config)
    return folder


def test_saved_and_loaded_again(saved: Path):
    source = language_model.locate(FolderModel(path=str(saved)))
    assert source.digest == sentinel.digest(saved)
    model, tokenizer = language_model.load(source), language_model.load_tokenizer(source)
    assert model.config.use_cache
    before = language_model.build(Shape(**SHAPE), TOKENIZER, 0).state_dict()
    assert all(bool((value == before[name]).all()) for name, value in model.state_dict().items())
    text = "<user>1+2=<assistant><think>1+2=3</think><answer>3</answer>"
    assert tokenizer(text)["input_ids"] == TOKENIZER(text)["input_ids"]
    assert tokenizer.padding_side == "left"
    assert [p.name for p in saved.parent.iterdir()] == ["final"]  # nothing partial is left


def test_preferred_weights_are_cast_and_not_the_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """A sharded model cannot be turned into another type by the one process that writes."""
    model = language_model.build(Shape(**SHAPE), TOKENIZER, 0)
    monkeypatch.setattr(lora, "whole_weights", lambda model: model.state_dict())
    generation = GenerationConfig(eos_token_id=[1, 3])
    language_model.save(model, TOKENIZER, tmp_path / "final", generation, "bfloat16")
    assert model.dtype == torch.float32
    there = language_model.load(
        language_model.locate(FolderModel(path=str(tmp_path / "final"))), dtype="auto"
    )
    assert {weight.dtype for weight in there.parameters()} == {torch.bfloat16}
    assert there.generation_config.eos_token_id == [1, 3]
    for name, weight in model.state_dict().items():
        assert torch.equal(there.state_dict()[name], weight.to(torch.bfloat16))


def test_no_pickled_weights(saved: Path, tmp_path: Path):
    for path in saved.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "model.safetensors").unlink()
    torch.save(
        language_model.build(Shape(**SHAPE), TOKENIZER, 0).state_dict(), tmp_path / "pytorch_model.bin"
    )
    with pytest.raises(UserError, match="cannot load it"):
        language_model.load(language_model.locate(FolderModel(path=str(tmp_path))))


def test_no_model_named(tmp_path: Path):
    with pytest.raises(UserError, match="neither an input"):
        language_model.locate(None)
    with pytest.raises(UserError, match="no folder"):
        language_model.locate(FolderModel(path=str(tmp_path / "x")))
    hub = HubModel(hub="org/name", revision="0" * 40)
    assert language_model.locate(hub) == language_model.Source(
        "org/name", "0" * 40, f"hub:org/name@{'0' * 40}"
    )


def test_prompts_of_a_world():
    dataset = prompts.of_task(typed.task(TASK), plain(TEMPLATE), 20, 0)
    assert dataset.column_names == ["prompt", "question", "answer", "difficulty"]
    assert len(set(dataset["question"])) == 20
    assert dataset[0]["prompt"] == f"<user>{dataset[0]['question']}<assistant>"
    assert prompts.of_task(typed.task(TASK), plain(TEMPLATE), 20, 0)[:] == dataset[:]
    assert prompts.of_task(typed.task(TASK), plain(TEMPLATE), 20, 1)[:] != dataset[:]


@pytest.fixture(params=["parquet", "jsonl"])
def hub(request: pytest.FixtureRequest, tmp_path: Path) -> dict:
    """A folder laid out like a Hub dataset."""
    rows = [{"problem": f"What is {i}+{i}?", "solution": str(2 * i), "level": 1} for i in range(5)]
    folder = tmp_path / "data-set"
    folder.mkdir()
    if request.param == "parquet":
        Dataset.from_list(rows).to_parquet(folder / "train-00000-of-00001.parquet")
    else:
        (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    columns = {"question": "problem", "answer": "solution", "verifier": "math"}
    return {"hub": str(folder), "revision": "0" * 40, "split": "train", **columns}


def test_prompts_of_a_hub_dataset(hub: dict):
    dataset = prompts.of_task(typed.task(hub), plain("Q: {question}\nA:"), None, 0)
    assert dataset[2] == {
        "prompt": "Q: What is 2+2?\nA:",
        "question": "What is 2+2?",
        "answer": "4",
        "difficulty": 0,
    }
    assert len(prompts.of_task(typed.task(hub), plain("{question}"), 3, 0)) == 3


@pytest.mark.parametrize(
    ("change", "problems", "says"),
    [
        ({"question": "problems"}, None, 'task.question: no column .* did you mean "problem"'),
        ({"split": "validation"}, None, "task.hub: cannot load"),
        ({}, 6, "problems: 6 asked, but .* has 5"),
    ],
)
def test_hub_mistakes(hub: dict, change, problems, says):
    with pytest.raises(UserError, match=says):
        prompts.of_task(typed.task({**hub, **change}), plain("{question}"), problems, 0)


def test_a_hub_model_is_fetched_at_its_revision(saved: Path, monkeypatch: pytest.MonkeyPatch):

    asked = []

    def fetch(name: str, revision: str, allow_patterns: list[str]) -> str:
        asked.append((name, revision))
        assert not any(pattern.endswith((".bin", ".py", "*")) for pattern in allow_patterns)
        return str(saved)

    monkeypatch.setattr(language_model, "snapshot_download", fetch)
    model = language_model.load(language_model.locate(HubModel(hub="org/name", revision="1" * 40)))
    assert asked == [("org/name", "1" * 40)]
    assert model.config._name_or_path == str(saved)  # where TRL loads the reference from
