"""Adapters: only a change of low rank is learnt, the product is a plain model, a killed run resumes."""

import json
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
import stage_runs
import test_dpo
import test_kto
import test_ppo
import test_reward_model
import test_sft
import torch
from stage_runs import at_training_step
from test_dpo import ready as dpo_ready  # noqa: F401
from test_reward_model import ready as reward_model_ready  # noqa: F401
from test_several_processes import both, require_same, weights, with_batch
from test_sft import ready as sft_ready  # noqa: F401

from encore import worlds
from encore.errors import UserError
from encore.models import language_model, lora
from encore.recipe.kinds import read_stage
from encore.recipe.kinds.stage import Lora
from encore.recipe.shape import Shape
from encore.runtime import sentinel

RANK = 3
LORA = {"rank": RANK, "alpha": 6}
POLICY = {"policy": "results/pretrain/metrics.json"}


def fixed_reference(config: dict[str, Any]) -> dict[str, Any]:
    args = {name: v for name, v in config["args"].items() if not name.startswith(("sync_ref", "ref_model"))}
    return {**config, "args": args, "lora": LORA}


STAGES = {
    "sft": (fixed_reference(test_sft.CONFIG), test_sft.INPUTS, "sft_ready"),
    "dpo": (fixed_reference(test_dpo.CONFIG), test_dpo.INPUTS, "dpo_ready"),
    "kto": (fixed_reference(test_kto.CONFIG), test_kto.INPUTS, "dpo_ready"),
    "grpo": (fixed_reference(stage_runs.GRPO), POLICY, "base"),
    "ppo": (fixed_reference(test_ppo.PPO), test_ppo.INPUTS, "ppo_ready"),
}


@pytest.fixture(scope="module")
def ppo_ready(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a policy and a reward model."""
    return test_ppo.stage(test_ppo.PPO, base, tmp_path_factory.mktemp("ppo") / "run")[2]


@pytest.mark.slow
@pytest.mark.parametrize("kind", STAGES)
def test_a_change_of_low_rank_is_added_to_the_weights(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
):
    config, inputs, fixture = STAGES[kind]
    ready, folders = request.getfixturevalue(fixture), [tmp_path / name for name in ("whole", "killed")]
    for folder in folders:
        copytree(ready, folder)
    arguments = stage_runs.command(kind, config, **inputs)
    assert stage_runs.run(kind, arguments, folders[0]) == 0, (folders[0] / "err.txt").read_text()
    before, after = (weights(at / "checkpoints" / k) for at, k in ((ready, "pretrain"), (folders[0], kind)))
    assert before.keys() == after.keys()
    ranks = {
        n: int(torch.linalg.matrix_rank(after[n] - w, tol=1e-6)) for n, w in before.items() if w.dim() > 1
    }
    assert {n for n, rank in ranks.items() if rank} == {n for n in ranks if "_proj" in n}
    assert max(ranks.values()) == RANK
    assert all(torch.equal(after[n], w) for n, w in before.items() if "_proj" not in n)
    result = json.loads((folders[0] / f"results/{kind}/metrics.json").read_text())
    assert (
        result["files"].keys()
        == json.loads((ready / "results/pretrain/metrics.json").read_text())["files"].keys()
    )

    assert stage_runs.run(kind, arguments, folders[1], killed_in_the_tenth_step) == -9
    assert stage_runs.run(kind, arguments, folders[1]) == 0, (folders[1] / "err.txt").read_text()
    assert "resuming from step" in (folders[1] / "out.txt").read_text()
    assert stage_runs.outputs(folders[0], kind) == stage_runs.outputs(folders[1], kind)
    if kind == "ppo":
        require_reference_without_adapters(folders[0] / "results/ppo/completions.jsonl")


def require_reference_without_adapters(completions: Path) -> None:
    rows = [json.loads(line) for line in completions.read_text().splitlines()]
    assert max(abs(row["kl"]) for row in rows if row["step"] == 1) < 1e-4
    assert max(abs(row["kl"]) for row in rows) > 1e-2


def killed_in_the_tenth_step() -> None:
    at_training_step(14)


@pytest.mark.slow
def test_a_model_kept_on_the_way_is_the_product_of_so_many_steps(sft_ready: Path, tmp_path: Path):  # noqa: F811
    """With its adapters added, to the bit as at the end; and training goes on as if none was kept."""
    config, inputs, _ = STAGES["sft"]
    found = []
    for steps, every in ((8, 4), (4, None), (8, None)):
        folder = tmp_path / f"{steps}-{every}"
        copytree(sft_ready, folder)
        args = config["args"] | {"lr_scheduler_type": "constant", "max_steps": steps}
        keys = config | {"args": args} | ({"evaluate_every": every} if every else {})
        assert stage_runs.run("sft", stage_runs.command("sft", keys, **inputs), folder) == 0, (
            folder / "err.txt"
        ).read_text()
        found.append(folder / "checkpoints/sft")
    places = ("steps/4", "final", "final")
    kept, short, whole = (sentinel.digest(at / place) for at, place in zip(found, places, strict=True))
    assert kept == short
    assert sentinel.digest(found[0] / "final") == whole


@pytest.mark.slow
def test_a_reward_model_has_adapters_and_a_head_trained_whole(
    reward_model_ready: Path,  # noqa: F811
    tmp_path: Path,
):
    config = fixed_reference(test_reward_model.CONFIG)
    folders = [tmp_path / name for name in ("whole", "killed")]
    for folder in folders:
        copytree(reward_model_ready, folder)
    arguments = stage_runs.command("reward_model", config, **test_reward_model.INPUTS)
    assert stage_runs.run("reward_model", arguments, folders[0]) == 0, (folders[0] / "err.txt").read_text()
    after = weights(folders[0] / "checkpoints/reward_model")
    before = {n.removeprefix("final/"): w for n, w in weights(folders[0] / "checkpoints/pretrain").items()}
    members = [
        {n.removeprefix(f"member{i}/"): w for n, w in after.items() if f"member{i}/" in n} for i in (0, 1)
    ]
    for member in members:
        assert member.keys() - before.keys() == {"score.weight"}
        shared = member.keys() & before.keys()
        ranks = {
            n: int(torch.linalg.matrix_rank(member[n] - before[n], tol=1e-6)) for n in shared if "_proj" in n
        }
        assert set(ranks.values()) == {RANK}
        assert all(torch.equal(member[n], before[n]) for n in shared - ranks.keys())
    heads = [member["score.weight"] for member in members]
    start = [
        torch.randn(heads[0].shape, generator=torch.Generator().manual_seed(3 + 10_007 * i)) for i in (0, 1)
    ]
    for head, drawn in zip(heads, start, strict=True):
        assert not torch.allclose(head, drawn / (head.shape[1] + 1) ** 0.5, atol=1e-3)
    result = json.loads((folders[0] / "results/reward_model/metrics.json").read_text())
    assert result["metrics"]["accuracy/validation"] > 0.8

    assert stage_runs.run("reward_model", arguments, folders[1], test_reward_model.in_the_second_member) == -9
    assert stage_runs.run("reward_model", arguments, folders[1]) == 0, (folders[1] / "err.txt").read_text()
    assert "resuming from step 4" in (folders[1] / "out.txt").read_text()
    whole, killed = (test_reward_model.outputs(folder) for folder in folders)
    assert whole == killed


@pytest.mark.slow
def test_two_processes_have_the_same_adapters(sft_ready: Path, tmp_path: Path):  # noqa: F811
    arguments = stage_runs.command("sft", with_batch(STAGES["sft"][0]), **test_sft.INPUTS)
    one, two = tmp_path / "one", tmp_path / "two"
    for folder in (one, two):
        copytree(sft_ready, folder)
    assert stage_runs.run("sft", arguments, one) == 0
    assert both("sft", arguments, two) == [0, 0], (two / "err.txt").read_text()
    require_same(one / "checkpoints/sft", two / "checkpoints/sft", sft_ready / "checkpoints/pretrain")


@pytest.mark.slow
def test_recomputed_activations_give_the_same_gradients(ppo_ready: Path, tmp_path: Path):
    """Of policy and critic, whose embeddings are frozen: recomputed behind them, gradients could be lost."""
    curves = []
    kwargs = {"use_reentrant": True}
    for name, args in (
        ("kept", {}),
        ("anew", {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": kwargs}),
    ):
        config = {**STAGES["ppo"][0], "args": {**STAGES["ppo"][0]["args"], "max_steps": 3, **args}}
        copytree(ppo_ready, tmp_path / name)
        arguments = stage_runs.command("ppo", config, **test_ppo.INPUTS)
        assert stage_runs.run("ppo", arguments, tmp_path / name) == 0, (
            tmp_path / name / "err.txt"
        ).read_text()
        rows = [
            r.split(",") for r in (tmp_path / name / "results/ppo/curve.csv").read_text().splitlines()[1:]
        ]
        curves.append({(step, metric): float(value) for step, metric, value in rows})
    require_same(tmp_path / "kept/checkpoints/ppo", tmp_path / "anew/checkpoints/ppo")
    norms = [key for key in curves[0] if "grad_norm" in key[1]]
    assert norms
    for key in norms:
        assert curves[0][key] > 0
        assert curves[1][key] == pytest.approx(curves[0][key], rel=1e-3), key


def test_an_unknown_layer_is_refused():
    tokenizer = worlds.tokenizer([worlds.make(stage_runs.TASK)])
    model = language_model.build(Shape(**stage_runs.PRETRAIN["model"]), tokenizer, 0)
    with pytest.raises(UserError, match=r'lora.targets: unknown linear layer "q_prj"; did you mean "q_proj"'):
        lora.adapters(Lora(**{**LORA, "targets": ["q_prj"]}), model, 0)
    with pytest.raises(UserError, match=r'lora\.targets: unknown linear layer "lm_head"'):
        lora.adapters(Lora(**{**LORA, "targets": ["q_proj", "lm_head"]}), model, 0)  # losses read it plain
    assert lora.adapters(None, model, 0) is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"sampler": "lean", "lora": {**LORA, "quantized": "nf4"}},
            "sampler: lean does not read weights of 4 bits",
        ),
        (
            {"resources": {"gpu": 8, "shard": "fsdp"}, "args": {"use_vllm": True}},
            "lora: TRL cannot send vLLM the sum of adapters and weights that resources.shard spreads",
        ),
        (
            {"lora": {**LORA, "quantized": "nf4"}, "resources": {"gpu": 8, "shard": "fsdp"}},
            "lora.quantized: weights of 4 bits stay whole on each GPU, and resources.shard would",
        ),
        (
            {"lora": {**LORA, "quantized": "nf4"}, "args": {"use_vllm": True}},
            "lora.quantized: weights of 4 bits cannot be sent to vLLM",
        ),
        ({"critic": "random"}, "critic: random has learnt nothing that adapters could add to"),
        (
            {"run": "grpo", "args": {"sync_ref_model": True, "beta": 0.1}},
            "args.sync_ref_model: a reference without adapters",
        ),
    ],
)
def test_what_takes_no_adapters_is_refused(change: dict[str, Any], says: str):
    stage = {
        "run": "ppo",
        "model": {"path": "p"},
        "rewards": {"accuracy": 1.0},
        "global_batch": 8,
        "args": {},
    }
    with pytest.raises(UserError, match=says):
        read_stage({**stage, "lora": LORA, **change}).check_rules()
    read_stage({**stage, **{name: value for name, value in change.items() if name != "lora"}}).check_rules()
