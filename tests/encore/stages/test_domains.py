"""Stage `grpo` on two domains, with a cap that rises and a reference that is replaced; killed and resumed."""

import copy
import csv
import json
import shutil
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import jobs
import pytest
import stage_runs
from saved_models import reward_model
from stage_runs import TASK, TEMPLATE, at_training_step, error_line

from encore.errors import UserError

pytestmark = pytest.mark.slow  # runs stages

INPUTS = {"policy": "results/pretrain/metrics.json", "reward_model": "results/reward_model/metrics.json"}
# rollouts of 4 prompts x 4 completions, 4 updates each; checkpoints at 3, 6, 9, …: mostly in mid-rollout
MIXED: dict[str, Any] = {
    "domains": {
        "reasoning": {
            "task": TASK,
            "template": TEMPLATE,
            "problems": 9,
            "share": 0.75,
            "rewards": {"accuracy": 1.0, "format": 0.5, "random": 0.5},
        },
        "general": {
            "task": {"world": "chain", "terms": [2, 2]},
            "template": TEMPLATE,
            "problems": 5,
            "share": 0.25,
            "rewards": {"reward_model": 2.0, "soft_overlong": 0.5},
        },
    },
    "ensemble": "worst",
    "soft_overlong_cache": 4,
    "caps": {"0": 8, "12": 12},
    "args": {
        **{name: value for name, value in stage_runs.GRPO["args"].items() if name != "max_completion_length"},
        "ref_model_mixup_alpha": 1.0,
        "ref_model_sync_steps": 8,
        "max_steps": 20,
        "logging_steps": 1,
    },
}


def stage(config: dict[str, Any], base: Path, folder: Path) -> tuple[str, list[str], Path]:
    shutil.copytree(base, folder, ignore=shutil.ignore_patterns("*.txt"))
    reward_model(folder, members=2)
    return "grpo", stage_runs.command("grpo", config, **INPUTS), folder


def done(config: dict[str, Any], base: Path, folder: Path) -> Path:
    one = stage(config, base, folder)
    assert stage_runs.run(*one) == 0, (folder / "err.txt").read_text()
    return folder


@pytest.fixture(scope="module", params=["hf", "lean"])
def mixed(request, base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], Path]:
    """The stage's config, and a folder where it ran unbroken; with each sampler."""
    config = MIXED | ({"sampler": "lean"} if request.param == "lean" else {})
    return config, done(config, base, tmp_path_factory.mktemp("mixed") / "run")


def completions(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "results/grpo/completions.jsonl").open()]


def curve(folder: Path, metric: str) -> dict[int, float]:
    """The metric by step."""
    with (folder / "results/grpo/curve.csv").open() as lines:
        return {int(r["step"]): float(r["value"]) for r in csv.DictReader(lines) if r["metric"] == metric}


def test_a_prompt_has_the_rewards_of_its_domain_alone(mixed):
    rows = completions(mixed[1])
    assert len(rows) == 5 * 16
    for row in rows:
        assert set(row["rewards"]) == set(MIXED["domains"][row["domain"]]["rewards"])
        assert None not in row["rewards"].values()
    counts = Counter((row["step"], row["domain"]) for row in rows)
    assert {counts[step, "reasoning"] for step in (1, 5, 9, 13, 17)} == {12}
    prompts = {row["domain"]: set() for row in rows}
    for row in rows:
        prompts[row["domain"]].add(row["prompt"])
    assert all(prompt.count("+") == 1 for prompt in prompts["general"])
    assert any(prompt.count("+") == 2 for prompt in prompts["reasoning"])


def test_the_reward_is_the_weighted_sum_and_the_advantage_that_of_the_group(mixed):
    rows = completions(mixed[1])
    for start in range(0, len(rows), 4):
        group = rows[start : start + 4]
        assert len({(row["prompt"], row["domain"]) for row in group}) == 1
        weights = MIXED["domains"][group[0]["domain"]]["rewards"]
        totals = [sum(weights[name] * value for name, value in row["rewards"].items()) for row in group]
        mean = sum(totals) / 4
        std = (sum((value - mean) ** 2 for value in totals) / 3) ** 0.5
        for row, value in zip(group, totals, strict=True):
            assert row["reward"] == pytest.approx(value, abs=1e-5)
            assert row["advantage"] == pytest.approx((value - mean) / (std + 1e-4), abs=1e-3)


def test_curves_are_by_domain(mixed):
    rows = [row for row in completions(mixed[1]) if row["step"] == 1]
    scores = [row["rewards"]["reward_model"] for row in rows if row["domain"] == "general"]
    assert curve(mixed[1], "rewards/reward_model/general/mean")[1] == pytest.approx(sum(scores) / 4, abs=1e-6)
    assert curve(mixed[1], "rewards/reward_model/mean")[1] == pytest.approx(sum(scores) / 4, abs=1e-6)
    assert curve(mixed[1], "rewards/reward_model/general/members_std")[1] > 0
    right = [row["rewards"]["accuracy"] for row in rows if row["domain"] == "reasoning"]
    for name in ("accuracy", "accuracy/reasoning", "rewards/accuracy/reasoning/mean"):
        assert curve(mixed[1], name)[1] == pytest.approx(sum(right) / 12, abs=1e-6)
    assert not curve(mixed[1], "accuracy/general")


def test_the_health_of_each_domain(mixed):
    result = json.loads((mixed[1] / "results/grpo/metrics.json").read_text())
    found = {one["check"]: one for one in result["health"]}
    for domain, own in MIXED["domains"].items():
        names = ("enough_prompts", "same_template", "truncation", "zero_variance", "reward")
        assert {f"{name}/{domain}" for name in names} <= found.keys()
        assert {f"rewards/{name}/{domain}" for name in own["rewards"]} <= found.keys()
    assert "gold/reasoning" in found
    assert "gold/general" not in found  # a reward model has no gold answers


def test_the_cap_rises_at_its_step(mixed):
    rows = completions(mixed[1])
    longest = {step: max(row["tokens"] for row in rows if row["step"] == step) for step in (1, 5, 9, 13, 17)}
    assert set(longest.values()) == {8, 12}, longest
    assert [longest[step] for step in (9, 13)] == [8, 12]
    for row in rows:
        cap = 8 if row["step"] <= 12 else 12
        assert row["eos"] or row["tokens"] == cap
        if row["domain"] == "general":  # Eq. 13 of DAPO, with the cap in force
            assert row["rewards"]["soft_overlong"] == min(0, (cap - 4 - row["tokens"]) / 4)
    assert curve(mixed[1], "completions/cap") == {1: 8, 5: 8, 9: 8, 13: 12, 17: 12}


def test_the_kl_is_to_the_reference_that_replaced_the_first(mixed):
    kl = curve(mixed[1], "kl")
    # the policy becomes the reference after steps 8 and 16, each the last of a rollout
    assert kl[1] == pytest.approx(0, abs=1e-6)
    assert kl[8] > 1e-4
    assert kl[9] == pytest.approx(0, abs=1e-6)
    assert kl[16] > 1e-4
    assert kl[17] == pytest.approx(0, abs=1e-6)


# checkpoints at 3, 9 (just after the reset, in mid-rollout), 12 (where the cap rises) and 15
@pytest.mark.parametrize(
    "step", [11, 14, *(pytest.param(step, marks=pytest.mark.slow) for step in (2, 4, 9, 10, 13, 17, 18, 20))]
)
def test_killed_and_resumed(mixed, step: int, base: Path, tmp_path: Path):
    config, unbroken = mixed
    one = stage(config, base, tmp_path / "run")
    assert stage_runs.run(*one, partial(at_training_step, step)) == -9
    assert stage_runs.run(*one) == 0, (one[2] / "err.txt").read_text()
    assert stage_runs.outputs(one[2], "grpo") == stage_runs.outputs(unbroken, "grpo")


def test_other_rewards_of_one_domain_leave_the_others_first_rollout_as_it_is(mixed, base, tmp_path):
    config = copy.deepcopy(mixed[0])
    config["domains"]["general"]["rewards"] = {"reward_model": -2.0, "soft_overlong": 0.0}
    other = done(config, base, tmp_path / "run")
    first, second = (
        {
            domain: [row for row in completions(folder) if row["step"] == 1 and row["domain"] == domain]
            for domain in ("reasoning", "general")
        }
        for folder in (mixed[1], other)
    )
    assert first["reasoning"] == second["reasoning"]
    assert first["general"] != second["general"]


def changed(path: str, value: Any) -> dict[str, Any]:
    config = copy.deepcopy(MIXED)
    *keys, last = path.split("/")
    at = config
    for key in keys:
        at = at[key]
    at[last] = value
    return config


@pytest.mark.parametrize(
    ("config", "trap", "says"),
    [
        (MIXED, stage_runs.nan_score, "step 1: reward reward_model/general is nan"),
        (changed("domains/reasoning/problems", 2), None,
         "domains.reasoning: health check enough_prompts: one rollout takes 3 prompts, there are 2"),
        (changed("caps/12", 61), None, "domains.general: health check context"),
    ],
    ids=["nan", "prompts", "context"],
)  # fmt: skip
def test_a_mistake_is_told_in_one_line(config, trap, says, base: Path, tmp_path: Path):
    one = stage(config, base, tmp_path / "run")
    assert stage_runs.run(*one, trap) == 2
    assert says in error_line(one[2])


def test_a_cap_that_changes_within_a_rollout():
    config = {"needs": dict.fromkeys(("policy", "reward_model"), "x"), **changed("caps", {"0": 8, "13": 12})}
    with pytest.raises(UserError, match=r"^caps\.13: a rollout lasts 4 steps"):
        jobs.stage("grpo", config).check_rules()


def test_one_task_with_a_reward_model(base: Path, tmp_path: Path):
    config = stage_runs.GRPO | {"rewards": {"reward_model": 1.0, "format": 0.5}}
    config["args"] = config["args"] | {"max_steps": 4}
    folder = done(config, base, tmp_path / "run")
    rows = completions(folder)
    assert all(set(row["rewards"]) == {"accuracy", "reward_model", "format"} for row in rows)
    assert all("domain" not in row for row in rows)
    for row in rows:
        expected = row["rewards"]["reward_model"] + 0.5 * row["rewards"]["format"]
        assert row["reward"] == pytest.approx(expected, abs=1e-6)
    assert curve(folder, "rewards/reward_model/mean")
    assert not curve(folder, "completions/cap")
