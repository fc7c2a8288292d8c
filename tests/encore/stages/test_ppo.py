"""Stage `ppo`: a run with a reward model, mistakes in one line, and exact resume."""

import json
import shutil
from pathlib import Path
from typing import Any

import jobs
import pytest
import stage_runs
from saved_models import reward_model
from stage_runs import TASK, TEMPLATE, error_line

from encore.errors import UserError
from encore.recipe.kinds import read_stage

INPUTS = {"policy": "results/pretrain/metrics.json", "reward_model": "results/reward_model/metrics.json"}
BOTH = {**INPUTS, "safety_model": "results/safety_model/metrics.json"}
DOCUMENTS = {
    "hub": "a/b",
    "revision": "0" * 40,
    "split": "train",
    "text": "t",
    "documents": 3,
    "max_length": 8,
}
# 8 micro-steps a rollout of 16 completions: windows of 2, two epochs; a checkpoint every third step
PPO: dict[str, Any] = {
    "task": TASK,
    "template": TEMPLATE,
    "problems": 40,
    "longest_prompt": 6,
    "rewards": {"reward_model": 1.0},
    "sampler": "lean",
    "ptx": {
        "coefficient": 0.5,
        "batch_size": 3,
        "task": TASK,
        "template": TEMPLATE,
        "corpus": {"documents": 7, "mixture": {"direct": 1.0}},
    },
    "args": {
        "per_device_train_batch_size": 4,
        "gradient_accumulation_steps": 2,
        "steps_per_generation": 4,
        "num_iterations": 2,
        "max_completion_length": 12,
        "learning_rate": 1e-3,
        "critic_learning_rate": 2e-3,
        "lr_scheduler_type": "linear",
        "kl_coef": 0.1,
        "kl_target": 0.2,
        "max_steps": 13,
        "save_steps": 3,
        "logging_steps": 2,
    },
}


def stage(config: dict[str, Any], base: Path, folder: Path) -> tuple[str, list[str], Path]:
    shutil.copytree(base, folder, ignore=shutil.ignore_patterns("*.txt"))
    reward_model(folder)
    return "ppo", stage_runs.command("ppo", config, **INPUTS), folder


@pytest.fixture(scope="module")
def done(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished `ppo` stage."""
    one = stage(PPO, base, tmp_path_factory.mktemp("ppo") / "run")
    assert stage_runs.run(*one) == 0, (one[2] / "err.txt").read_text()
    return one[2]


def test_its_product_is_the_policy_alone(done: Path):
    names = {path.name for path in (done / "checkpoints/ppo/final").iterdir()}
    assert names == {path.name for path in (done / "checkpoints/pretrain/final").iterdir()}
    assert not list((done / "checkpoints/ppo").glob("checkpoint-*"))


def test_what_it_measures(done: Path):
    result = json.loads((done / "results/ppo/metrics.json").read_text())
    for name in ("kl", "kl_coef", "value_loss", "policy_loss", "ptx_loss", "explained_variance", "entropy"):
        assert f"last/{name}" in result["metrics"], name
    assert result["metrics"]["critic_parameters"] > 0
    assert result["metrics"]["skipped/long"] > 0  # sums of three terms
    curve = [line.split(",") for line in (done / "results/ppo/curve.csv").read_text().splitlines()]
    at_start = [float(value) for _, name, value in curve if name == "ratio/at_start"]
    assert len(at_start) == 3  # rollouts, of those that a log line follows
    assert max(at_start) < 1e-5
    assert not [name for _, name, _ in curve if name in ("frac_reward_zero_std", "groups/all_wrong")]
    coefficients = [float(value) for _, name, value in curve if name == "kl_coef"]
    assert coefficients[0] == 0.1
    assert len(set(coefficients)) > 1


def test_every_completion_is_kept_with_its_rewards_and_its_kl(done: Path):
    lines = (done / "results/ppo/completions.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert len(rows) == 4 * 16  # rollouts
    first = [row for row in rows if row["step"] == 1]
    assert max(abs(row["kl"]) for row in first) < 1e-4  # the policy is still its own reference
    assert max(abs(row["kl"]) for row in rows) > 1e-2
    assert all(row["reward"] == row["rewards"]["reward_model"] for row in rows)
    assert all(row["rewards"]["accuracy"] in (0.0, 1.0) for row in rows)  # measured, not rewarded


def test_a_score_that_is_no_number_stops_the_job(base: Path, tmp_path: Path):
    one = stage(PPO, base, tmp_path / "run")
    assert stage_runs.run(*one, stage_runs.nan_score) == 2
    assert "step 1: reward reward_model is nan" in error_line(one[2])


def test_a_safety_model_is_a_reward_of_its_own_or_a_guard(base: Path, tmp_path: Path):
    shutil.copytree(base, tmp_path / "run", ignore=shutil.ignore_patterns("*.txt"))
    reward_model(tmp_path / "run")
    reward_model(tmp_path / "run", name="safety_model", seed=7)
    short = {**PPO, "args": {**PPO["args"], "max_steps": 4}}

    def rewarded(**keys: Any) -> list[dict[str, Any]]:
        """Return the completions of the first rollout, which are the same in every run."""
        command = stage_runs.command("ppo", {**short, **keys}, **BOTH)
        assert stage_runs.run("ppo", command, tmp_path / "run") == 0
        lines = (tmp_path / "run/results/ppo/completions.jsonl").read_text().splitlines()
        return [row for row in map(json.loads, lines) if row["step"] == 1]

    apart = rewarded(rewards={"reward_model": 1.0, "safety_model": 0.5})
    scores = [(row["rewards"]["reward_model"], row["rewards"]["safety_model"]) for row in apart]
    assert [row["reward"] for row in apart] == pytest.approx([h + 0.5 * safe for h, safe in scores])
    threshold = sorted(safe for _, safe in scores)[len(scores) // 2]
    together = rewarded(safety_threshold=threshold)
    expected = [safe if safe < threshold else h for h, safe in scores]
    assert [row["reward"] for row in together] == pytest.approx(expected)
    assert set(expected) & {h for h, _ in scores}
    assert set(expected) & {safe for _, safe in scores}
    assert ",rewards/reward_model/unsafe," in (tmp_path / "run/results/ppo/curve.csv").read_text()


def test_a_reward_model_with_another_tokenizer(base: Path, tmp_path: Path):
    from encore import worlds

    one = stage(PPO, base, tmp_path / "run")
    shutil.rmtree(one[2] / "checkpoints/reward_model")
    reward_model(one[2], worlds.tokenizer([worlds.make({"world": "countdown"})]))
    assert stage_runs.run(*one) == 2
    assert "have different tokenizers" in error_line(one[2])
    assert not list((one[2] / "checkpoints/ppo").glob("checkpoint-*"))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"needs": {}}, "rewards.reward_model: needs.reward_model is missing"),
        ({"rewards": {"accuracy": 0.0}}, "expected one with a weight other than 0"),
        ({"rewards": {"accuracy": 1.0}}, "needs.reward_model: neither rewards nor critic uses it"),
        ({"needs": {}, "rewards": {"accuracy": 1.0}, "critic": "reward_model"}, "critic: reward_model, but"),
        ({"rewards": {"accuracy": 1.0}, "critic": "reward_model", "ensemble": "worst"}, "ensemble: "),
        ({"rewards": {"safety_model": 1.0}}, "rewards.safety_model: needs.safety_model is missing"),
        ({"safety_threshold": 0.1}, "safety_threshold: needs.safety_model is missing"),
        ({"needs": BOTH}, "needs.safety_model: neither rewards nor safety_threshold uses it"),
        (
            {"needs": BOTH, "rewards": {"reward_model": 1.0, "safety_model": 1.0}, "safety_threshold": 0.1},
            "rewards.safety_model: safety_threshold puts it into rewards.reward_model",
        ),
        (
            {"needs": BOTH, "rewards": {"accuracy": 1.0}, "critic": "reward_model", "safety_threshold": 0.1},
            "safety_threshold: rewards.reward_model is missing",
        ),
        ({"args": {"top_k": 5}}, "args.top_k: 5, but sampler lean"),
        ({"ptx": {"batch_size": 3}}, "ptx.coefficient: missing"),
        ({"ptx": {"coefficient": 1, "batch_size": 3}}, "ptx: its documents come from"),
        ({"ptx": {**PPO["ptx"], "data": DOCUMENTS}}, "both are given"),
        ({"ptx": {**PPO["ptx"], "corpus": {"documents": 7}}}, "ptx.corpus.mixture: missing"),
        ({"ptx": {**PPO["ptx"], "task": {"hub": "a/b"}}}, "ptx.task: a corpus is written by a world"),
    ],
)
def test_keys_that_contradict_each_other(changes: dict[str, Any], says: str):
    config = {"run": "ppo", **PPO, "needs": dict.fromkeys(INPUTS, "x"), **changes}
    begun = {} if config["needs"] else {"model": {"path": "p"}}
    with pytest.raises(UserError) as error:
        read_stage({**config, **begun}).check_rules()
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({"loss_type": "grpo"}, 'args.loss_type: unknown value the text "grpo"; did you mean "dapo"'),
        ({"beta": 0.04}, "args.beta: expected 0.0, got 0.04: the KL is in the reward"),
        ({"mask_truncated_completions": True}, "args.mask_truncated_completions: expected false, got true"),
        ({"lam": 1.5}, "args.lam: expected at most 1, got 1.5"),
        ({"vf_coef": -1.0}, "args.vf_coef: expected at least 0"),
        ({"kl_target": 1.0, "kl_coef": 0.0}, "args.kl_target: "),
        ({"missing_eos_penalty": 1.0, "missing_eos_score": -1.0}, "args.missing_eos_score: "),
        (
            {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 1, "steps_per_generation": 1},
            "args.steps_per_generation: expected a rollout of at least 2 completions, got 1",
        ),
        ({"kl_coeff": 0.1}, 'args.kl_coeff: unknown key; did you mean "kl_coef"'),
    ],
)
def test_arguments_that_make_no_sense(args: dict[str, Any], says: str):
    with pytest.raises(UserError) as error:
        jobs.stage("ppo", {**PPO, "args": {**PPO["args"], **args}}).check_rules()
    assert says in str(error.value)


def test_a_prompt_needs_no_group(tmp_path: Path):
    from encore.stages import rollout_args

    def made(**args: Any) -> tuple[int, int]:
        typed = jobs.stage("ppo", {"args": {**PPO["args"], **args}})
        with rollout_args.started(typed, jobs.job({}, tmp_path)) as (found, _):
            return found.num_generations, found.generation_batch_size

    assert made(per_device_train_batch_size=3) == (1, 12)
    thirds = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 3, "steps_per_generation": 3}
    assert made(**thirds) == (1, 3)
    assert made(num_generations=4) == (4, 16)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "kills"),
    [({}, [3, *range(8, 27, 3)]), ({"sampler": None, "critic": "random"}, [8, 17, 26])],
    ids=["lean", "generate"],
)
def test_killed_at_any_micro_step(keys: dict[str, Any], kills: list[int], base: Path, tmp_path: Path):
    """A run has 26 micro-steps."""
    config = {name: value for name, value in {**PPO, **keys}.items() if value is not None}
    stage_runs.require_resumed(lambda name: stage(config, base, tmp_path / name), kills)
