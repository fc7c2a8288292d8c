"""Rollouts of several turns: a stage that is killed at any step and run again gives the same bits."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import stage_runs
from stage_runs import at_training_step

TASK = {"world": "products", "products": [1, 2], "digits": [1, 1]}
MIXTURE = {"direct": 0.1, "called": 0.8, "muddled": 0.1}
LAKE = {"world": "frozen_lake", "size": [2, 3]}  # in which each call moves, and has its own advantage
WALKS = {
    "task": LAKE,
    "template": stage_runs.TEMPLATE,
    "share": 0.3,
    "mixture": {"walk": 1},
}
GUESSES = {  # of an environment that pays for few guesses
    "task": {"world": "guessing:Calls"},
    "template": stage_runs.TEMPLATE,
    "share": 0.4,
    "mixture": {"guesses": 1},
}
PRETRAIN = {
    **stage_runs.PRETRAIN,
    "task": TASK,
    "corpus": {"documents": 96, "mixture": MIXTURE, "also": [WALKS, GUESSES]},
}
TOOL = {"name": "calculator", "calls": 2, "longest": 4}
GRPO = {**stage_runs.GRPO, "task": TASK, "rewards": {"accuracy": 1.0, "called": 0.5, "random": 0.5}}
SAMPLERS: dict[str, dict[str, Any]] = {
    "lean": {"sampler": "lean"},
    "transformers": {},
    "learned": {"sampler": "lean", "learn_results": True},
    "ahead": {"sampler": "lean", "max_staleness": 2},
    "rounded": {"sampler": "lean", "sampler_precision": "int8"},  # with TRL's correction, its default
    "lake": {
        "sampler": "lean",
        "task": LAKE,
        "rewards": {"accuracy": 1.0},
        "advantage": "process",
        "tool": {**TOOL, "name": "frozen_lake"},
    },
    "environment": {
        "sampler": "lean",
        "task": {"environment": "guessing:Guess", "episodes": 100, "right": 0.5},
        "rewards": {"accuracy": 0.5, "environment": 1.0},
        "tool": {
            **TOOL,
            "name": "environment",
            "result": ["<tool_response>", "</tool_response>"],
        },
    },
}
POLICY = "results/pretrain/metrics.json"
pytestmark = pytest.mark.slow


def arguments(sampler: str) -> list[str]:
    return stage_runs.command("grpo", {**GRPO, "tool": TOOL, **SAMPLERS[sampler]}, policy=POLICY)


@pytest.fixture(scope="module")
def caller(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a policy that has read calls."""
    folder = tmp_path_factory.mktemp("caller")
    assert stage_runs.run("pretrain", stage_runs.command("pretrain", PRETRAIN), folder) == 0
    return folder


@pytest.fixture(scope="module")
def unbroken(caller: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Of each sampler a run that was never killed."""
    folders = {}
    for sampler in SAMPLERS:
        folders[sampler] = tmp_path_factory.mktemp(sampler) / "run"
        shutil.copytree(caller, folders[sampler])
        status = stage_runs.run("grpo", arguments(sampler), folders[sampler])
        assert status == 0, (folders[sampler] / "err.txt").read_text()
    return folders


def before_any_checkpoint():
    at_training_step(2)


def in_a_rollout():
    at_training_step(11)  # the checkpoint of step 9 is in the middle of the third rollout


def in_the_next_epoch():
    at_training_step(22)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("trap", [before_any_checkpoint, in_a_rollout, in_the_next_epoch])
def test_killed_and_rerun(sampler: str, trap: Any, caller: Path, unbroken: dict[str, Path], tmp_path: Path):
    folder = tmp_path / "killed"
    shutil.copytree(caller, folder)
    assert stage_runs.run("grpo", arguments(sampler), folder, trap) == -9
    assert stage_runs.run("grpo", arguments(sampler), folder) == 0, (folder / "err.txt").read_text()
    assert stage_runs.outputs(folder, "grpo") == stage_runs.outputs(unbroken[sampler], "grpo")


def test_ratios_start_at_1_whatever_samples(unbroken: dict[str, Path]):
    """So the log-probabilities of a rollout's turns are those of the policy, over the whole of it."""
    for folder in unbroken.values():
        lines = (folder / "results/grpo/curve.csv").read_text().splitlines()
        starts = [
            float(value) for _, name, value in (line.split(",") for line in lines) if name == "ratio/at_start"
        ]
        assert starts
        assert max(starts) < 1e-4


def test_the_policy_has_called_and_its_own_tokens_alone_count(unbroken: dict[str, Path]):
    for folder in unbroken.values():
        lines = (folder / "results/grpo/completions.jsonl").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        assert sum(row["calls"] > 0 for row in rows) > 20
        assert max(row["calls"] for row in rows) == TOOL["calls"]
        assert any(row["malformed"] for row in rows)
        assert max(row["tokens"] for row in rows) <= GRPO["args"]["max_completion_length"]
        results = [len(re.findall(r"<result>|<tool_response>", row["completion"])) for row in rows]
        assert all(count >= row["calls"] for count, row in zip(results, rows, strict=True))


def test_an_environment_logs_the_rewards_of_calls_and_its_states(unbroken: dict[str, Path]):
    lines = (unbroken["environment"] / "results/grpo/completions.jsonl").read_text().splitlines()
    rows = [row for row in map(json.loads, lines) if row["calls"]]
    assert all(len(row["call_rewards"]) == len(row["states"]) == row["calls"] for row in rows)
    assert any("right" in turn for row in rows for turn in row["turns"])
    assert all(row["rewards"]["environment"] > 0 for row in rows if 1.0 in row["call_rewards"])
