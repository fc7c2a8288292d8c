"""What a model has, from its configuration alone: its size, and what its layers keep."""

import json
import subprocess
import sys

import pytest
import torch
from papers import GRAPH, RECIPES
from transformers import AutoConfig, AutoModelForCausalLM

from encore.errors import UserError
from encore.forecast import counting
from encore.forecast.model_size import CONFIGS, KNOWN, of_model, saved_a_token
from encore.recipe.machine import FolderModel, HubModel

SIZES = {  # billions, of the model cards
    "deepseek-ai/DeepSeek-V3-Base": 671,
    "deepseek-ai/deepseek-math-7b-instruct": 6.91,
    "Qwen/Qwen2.5-32B": 32.8,
    "Qwen/Qwen2.5-0.5B": 0.494,
    "Qwen/Qwen3-30B-A3B-Base": 30.5,
    "EleutherAI/pythia-6.9b": 6.86,
    "EleutherAI/pythia-160m": 0.162,
}
SHAPES = {  # of each kind of network that the recipes have, small
    "qwen2": {"num_key_value_heads": 2},
    "llama": {"num_key_value_heads": 4},
    "gpt_neox": {},
    "qwen3": {"num_key_value_heads": 2, "head_dim": 16},
}


def hub(name):
    return HubModel(hub=name, revision="0" * 40)


def small(folder, kind):
    config = AutoConfig.for_model(
        kind,
        hidden_size=64,
        intermediate_size=160,
        num_hidden_layers=4,
        num_attention_heads=4,
        vocab_size=128,
        max_position_embeddings=256,
        **SHAPES[kind],
    )
    config.save_pretrained(folder)
    return FolderModel(path=str(folder)), config


@pytest.mark.parametrize("name", SIZES)
def test_parameters_are_counted_from_the_configuration(name):
    assert of_model(hub(name)).parameters / 1e9 == pytest.approx(SIZES[name], rel=0.005)


def test_of_experts_a_token_is_multiplied_with_those_it_visits():
    assert of_model(hub("deepseek-ai/DeepSeek-V3-Base")).active / 1e9 == pytest.approx(37, rel=0.03)
    assert of_model(hub("Qwen/Qwen3-30B-A3B-Base")).active / 1e9 == pytest.approx(3.3, rel=0.1)


def test_every_model_that_a_recipe_names_has_a_configuration():
    nodes = [
        node
        for name, recipe in RECIPES.items()
        for scale in recipe.scales
        for node in GRAPH.grid(name, scale, recipe.arms(scale), [0])
    ]
    models = {model for node in nodes if (model := GRAPH.model_of(node))}
    assert len(models) >= 15
    for model in models:
        assert of_model(model).parameters > 1e8


def test_a_model_without_a_configuration_is_refused_in_one_line():
    with pytest.raises(
        UserError, match=r"nobody/none: its config.json is neither .*; did you mean|valid: "
    ) as error:
        of_model(hub("nobody/none"))
    assert "\n" not in str(error.value)


def test_no_file_of_configurations_names_what_it_is_not():
    for file in CONFIGS.glob("*.json"):
        assert "--" in file.stem
        assert json.loads(file.read_text(encoding="utf-8"))["model_type"]


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("half", [False, True])
def test_what_a_layer_keeps_is_what_torch_saves(kind, half, tmp_path):
    """On real tensors, of a network with four layers, where the count is of one and two without data."""
    model, config = small(tmp_path, kind)
    config._attn_implementation = "sdpa"
    network = AutoModelForCausalLM.from_config(config, dtype=torch.float32).train().base_model
    weights = {one.untyped_storage().data_ptr() for one in network.parameters()}

    def kept(tokens):
        sizes = {}

        def keep(tensor):
            place = tensor.untyped_storage()
            if place.data_ptr() not in weights:
                sizes[place.data_ptr()] = (place.nbytes(), tensor)
            return tensor

        ids = torch.zeros(1, tokens, dtype=torch.long)
        with (
            torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
            torch.autocast("cpu", torch.bfloat16, enabled=half),
        ):
            out = network(input_ids=ids, use_cache=False)
        del out
        return sum(size for size, _ in sizes.values())

    measured = (kept(192) - kept(96)) / 96 / config.num_hidden_layers
    assert saved_a_token(model, half) == pytest.approx(measured, rel=0.15)


def test_what_is_known_is_not_counted_again(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".snakemake").mkdir()
    model, config = small(tmp_path, "llama")

    def found():
        of_model.cache_clear()
        saved_a_token.cache_clear()
        return of_model(model), saved_a_token(model, True), saved_a_token(model, False)

    first = found()
    with monkeypatch.context() as blind:
        blind.setattr(counting, "_configuration", None)
        assert found() == first
    config.num_hidden_layers += 1
    config.save_pretrained(tmp_path)
    assert found()[0].parameters > first[0].parameters
    KNOWN.write_text("cut o")
    assert found()[1:] == first[1:]


def test_a_plan_loads_no_torch_where_all_is_known():
    """It is made at each start, and its import takes longer than all else there."""
    asked = "import sys; from encore.forecast import left; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", asked], check=False).returncode == 0
