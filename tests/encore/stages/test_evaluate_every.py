"""`evaluate_every`: models kept on the way are those of their steps, and training does not notice."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import stage_runs
import torch
from safetensors.torch import load_file
from stage_runs import GRPO, PRETRAIN, command
from test_live_curve import in_step_11

from encore import validity
from encore.models import language_model
from encore.runtime import sentinel

pytestmark = pytest.mark.slow  # runs stages

KEPT: dict[str, Any] = PRETRAIN | {"evaluate_every": 5}


def pretrain(folder: Path, config: dict[str, Any], trap: Any = None) -> int:
    return stage_runs.run("pretrain", command("pretrain", config), folder, trap)


def constant(steps: int, **keys: Any) -> dict[str, Any]:
    """A stage of so many steps, each of which is the same whatever follows it."""
    return (
        PRETRAIN | keys | {"args": PRETRAIN["args"] | {"lr_scheduler_type": "constant", "max_steps": steps}}
    )


def models(folder: Path, kind: str = "pretrain") -> dict[str, bytes]:
    paths = sorted((folder / f"checkpoints/{kind}/steps").rglob("*.*"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def test_of_a_killed_stage_they_are_as_of_one_that_was_not(base: Path, tmp_path: Path):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert pretrain(whole, KEPT) == 0, (whole / "err.txt").read_text()
    assert pretrain(killed, KEPT, in_step_11) == -9
    assert pretrain(killed, KEPT) == 0, (killed / "err.txt").read_text()
    assert models(killed) == models(whole)
    outputs, plain = (stage_runs.outputs(folder, "pretrain") for folder in (whole, base))
    record, without = (json.loads(one.pop("metrics.json")) for one in (outputs, plain))
    assert outputs == plain  # to the bit: keeping a model is no part of training
    assert record.keys() - without.keys() == {"steps"}
    assert [*record["steps"]] == ["10", "15", "5"]
    assert record["steps"]["5"]["digest"] == sentinel.digest(whole / "checkpoints/pretrain/steps/5")


@pytest.mark.parametrize("dtype", [None, "bfloat16"])
def test_it_is_the_product_of_a_stage_of_so_many_steps(tmp_path: Path, dtype: str | None):
    saved = {"saved_dtype": dtype} if dtype else {}
    longer, shorter = tmp_path / "longer", tmp_path / "shorter"
    assert pretrain(longer, constant(6, evaluate_every=4, **saved)) == 0, (longer / "err.txt").read_text()
    assert pretrain(shorter, constant(4, **saved)) == 0
    kept, product = longer / "checkpoints/pretrain/steps/4", shorter / "checkpoints/pretrain/final"
    assert sentinel.digest(kept) == sentinel.digest(product)
    after = load_file(longer / "checkpoints/pretrain/final/model.safetensors")
    assert any(
        (after[name] != weight).any() for name, weight in load_file(kept / "model.safetensors").items()
    )


@pytest.mark.slow
def test_rollouts_do_not_notice(trained: Path, base: Path, tmp_path: Path):
    """Of a stage that samples: its model's own generation config is another one while it trains."""
    folder = stage_runs.fresh("grpo", base, tmp_path / "run")
    arguments = command("grpo", GRPO | {"evaluate_every": 10}, policy="results/pretrain/metrics.json")
    assert stage_runs.run("grpo", arguments, folder) == 0, (folder / "err.txt").read_text()
    outputs, plain = (stage_runs.outputs(one, "grpo") for one in (folder, trained))
    del outputs["metrics.json"], plain["metrics.json"]
    assert outputs == plain
    steps = folder / "checkpoints/grpo/steps"
    assert sorted(path.name for path in steps.iterdir()) == ["10", "20"]
    for name in ("generation_config.json", "config.json", "tokenizer.json"):
        assert (steps / "10" / name).read_bytes() == (folder / "checkpoints/grpo/final" / name).read_bytes()


def test_a_model_that_goes_on_is_left_as_it_is(checkpoint: Path, tmp_path: Path):
    source = language_model.locate(checkpoint)
    model, words = language_model.load(source), language_model.load_tokenizer(source)
    model.config.use_cache, model.generation_config.temperature = False, 0.7
    given = model.generation_config
    model.lm_head.weight = model.get_input_embeddings().weight
    weights = {name: weight.clone() for name, weight in model.state_dict().items()}
    other = type(given)(do_sample=True, temperature=0.5)
    language_model.keep(model, words, tmp_path / "steps/3", other, "bfloat16")
    assert model.generation_config is given
    assert (model.config.use_cache, model.config.dtype) == (False, torch.float32)
    assert all(torch.equal(weight, weights[name]) for name, weight in model.state_dict().items())
    kept = load_file(tmp_path / "steps/3/model.safetensors")
    assert {weight.dtype for weight in kept.values()} == {torch.bfloat16}
    again = language_model.load(language_model.Source(str(tmp_path / "steps/3"), None, ""))
    assert again.generation_config.temperature == 0.5
    assert again.config.use_cache is True


def test_a_lost_one_has_the_stage_redone(tmp_path: Path):
    assert pretrain(tmp_path, constant(2, evaluate_every=1)) == 0
    path = tmp_path / "results/pretrain/metrics.json"
    record = json.loads(path.read_text())
    for one in (record, record["steps"]["1"]):
        one["model"] = str(tmp_path / one["model"])
    path.write_text(json.dumps(record))
    assert validity.of_stage(path) is None
    assert language_model.locate(path, 1).digest == record["steps"]["1"]["digest"]
    shutil.rmtree(tmp_path / "checkpoints/pretrain/steps/1")
    assert "steps/1 is missing" in (validity.of_stage(path) or "")
