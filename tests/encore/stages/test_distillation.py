"""Stage `distillation`: the policy comes nearer to its teacher; mistakes in one line; exact resume."""

import json
import shutil
from pathlib import Path
from typing import Any

import jobs
import pytest
import stage_runs
import torch
from stage_runs import TASK, TEMPLATE, error_line
from transformers import GraniteConfig, GraniteForCausalLM

from encore.errors import UserError
from encore.learning.distillation import _head
from encore.recipe.kinds import distillation as kind
from encore.stages.distillation import operations

POLICY, TEACHER = "results/pretrain/metrics.json", "results/grpo/metrics.json"
# 4 micro-steps a rollout of 16 completions: windows of 2; a checkpoint every third step
DISTILLATION: dict[str, Any] = {
    "task": TASK,
    "template": TEMPLATE,
    "problems": 40,
    "divergence": "reverse_kl",
    "on_policy": 0.5,
    "sampler": "lean",
    "args": {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "steps_per_generation": 4,
        "max_completion_length": 12,
        "learning_rate": 1e-2,
        "lr_scheduler_type": "linear",
        "max_steps": 13,
        "save_steps": 3,
        "logging_steps": 2,
    },
}


def stage(config: dict[str, Any], trained: Path, folder: Path) -> tuple[str, list[str], Path]:
    """A stage whose policy is the base model of `trained`, and its teacher that model after `grpo`."""
    shutil.copytree(trained, folder, ignore=shutil.ignore_patterns("*.txt"))
    return "distillation", stage_runs.command("distillation", config, policy=POLICY, teacher=TEACHER), folder


@pytest.fixture(scope="module")
def done(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished stage."""
    run = stage(DISTILLATION, trained, tmp_path_factory.mktemp("distillation") / "run")
    assert stage_runs.run(*run) == 0, (run[2] / "err.txt").read_text()
    return run[2]


def curve(folder: Path, metric: str) -> list[float]:
    lines = (folder / "results/distillation/curve.csv").read_text().splitlines()
    return [float(value) for _, name, value in (line.split(",") for line in lines) if name == metric]


def test_it_comes_nearer_to_the_teacher(done: Path):
    divergence = curve(done, "divergence")
    assert divergence[-1] < divergence[0] / 2
    assert min(divergence) >= 0


def test_the_product_is_a_policy_and_every_completion_is_kept(done: Path):
    names = {path.name for path in (done / "checkpoints/distillation/final").iterdir()}
    assert names == {path.name for path in (done / "checkpoints/pretrain/final").iterdir()}
    result = json.loads((done / "results/distillation/metrics.json").read_text())["metrics"]
    assert result["teacher_parameters"] == result["parameters"] > 0
    assert "last_fifth/accuracy" in result
    lines = (done / "results/distillation/completions.jsonl").read_text().splitlines()
    assert len(lines) == 7 * 16  # rollouts
    assert {row["reward"] for row in map(json.loads, lines)} == {0.0}
    assert not curve(done, "frac_reward_zero_std")


def test_a_policy_is_as_its_own_teacher(base: Path, tmp_path: Path):
    shutil.copytree(base, tmp_path / "run", ignore=shutil.ignore_patterns("*.txt"))
    config = {name: DISTILLATION[name] for name in ("task", "template", "problems")}
    args = {**DISTILLATION["args"], "logging_steps": 1, "max_steps": 1}
    command = stage_runs.command(
        "distillation", {**config, "divergence": "jsd", "args": args}, policy=POLICY, teacher=POLICY
    )
    assert stage_runs.run("distillation", command, tmp_path / "run") == 0
    assert max(map(abs, curve(tmp_path / "run", "divergence"))) < 1e-6


def test_adapters_come_nearer_too(trained: Path, tmp_path: Path):
    """And the loss reads them: it runs the backbone below the adapters' wrapper."""
    run = stage({**DISTILLATION, "lora": {"rank": 8, "alpha": 16.0}}, trained, tmp_path / "run")
    assert stage_runs.run(*run) == 0, (run[2] / "err.txt").read_text()
    divergence = curve(run[2], "divergence")
    assert divergence[-1] < divergence[0] / 2


def test_the_teacher_samples_its_share_of_the_rollouts(trained: Path, tmp_path: Path, done: Path):
    """The first rollout is the same for all whose policy samples it."""

    def first(share: float) -> list[str]:
        run = stage({**DISTILLATION, "on_policy": share}, trained, tmp_path / str(share))
        assert stage_runs.run(*run) == 0
        lines = (run[2] / "results/distillation/completions.jsonl").read_text().splitlines()
        return [row["completion"] for row in map(json.loads, lines) if row["step"] == 1]

    assert first(0.0) != first(1.0)


def test_a_teacher_with_another_tokenizer(trained: Path, tmp_path: Path):
    from encore import worlds

    run = stage(DISTILLATION, trained, tmp_path / "run")
    final = tmp_path / "run/checkpoints/grpo/final"
    worlds.tokenizer([worlds.make({"world": "countdown"})]).save_pretrained(final)
    record = tmp_path / "run" / TEACHER
    stage_runs.finished(final.parent).replace(record)
    assert stage_runs.run(*run) == 2
    assert "have different tokenizers" in error_line(run[2])


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"args": {"epsilon": 0.2}}, "args.epsilon: stage distillation does not read it; remove it"),
        (
            {"args": {"vllm_importance_sampling_correction": False}},
            "args.vllm_importance_sampling_correction: stage distillation does not read it; remove it",
        ),
        ({"rewards": {"accuracy": 1.0}}, "rewards.accuracy: expected 0, got 1: rewards are measured"),
        ({"sampler": None}, "on_policy: the teacher samples by sampler lean alone"),
        ({"args": {"use_vllm": True}}, "args.use_vllm: stage distillation samples by transformers"),
    ],
)
def test_keys_that_make_no_sense(keys: dict[str, Any], says: str):
    config = {**DISTILLATION, **keys, "args": {**DISTILLATION["args"], **keys.get("args", {})}}
    config = {name: value for name, value in config.items() if value is not None}
    with pytest.raises(UserError) as error:
        jobs.stage("distillation", {**config, "needs": {"policy": "a", "teacher": "b"}}).check_rules()
    assert says in str(error.value)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "kills"),
    [({}, [3, *range(8, 27, 3)]), ({"sampler": None, "on_policy": None, "divergence": "jsd"}, [8, 17, 26])],
    ids=["lean", "generate"],
)
def test_killed_at_any_micro_step(keys: dict[str, Any], kills: list[int], trained: Path, tmp_path: Path):
    """A run has 26 micro-steps."""
    config = {name: value for name, value in {**DISTILLATION, **keys}.items() if value is not None}
    stage_runs.require_resumed(lambda name: stage(config, trained, tmp_path / name), kills)


def test_the_logits_are_scaled_as_the_models_family_does():
    small = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = GraniteConfig(vocab_size=16, num_key_value_heads=2, logits_scaling=8.0, **small)
    model, ids = GraniteForCausalLM(config).eval(), torch.tensor([[3, 4, 5]])
    weight, bias, scale, cap = _head(model)
    assert (bias, cap) == (None, None)
    with torch.no_grad():
        states = model.model(ids).last_hidden_state
        torch.testing.assert_close(scale * states @ weight.T, model(ids).logits)


def test_every_argument_that_is_not_read_is_one():
    arguments = kind.DistillationStage.model_fields["args"].annotation.model_fields
    assert set(kind.UNREAD) <= set(arguments)


def test_who_samples_a_token_pays_for_it():
    """Of a teacher three times as large; the policy is trained on the token in either case."""
    assert operations(10, 30, 1.0, 1) == 2 * 10 + 6 * 10 + 2 * 30
    assert operations(10, 30, 0.0, 1) == 2 * 30 + 6 * 10 + 2 * 30
    assert operations(10, 30, 0.5, 2) == 2 * 20 + 2 * (6 * 10 + 2 * 30)
