"""Stages that sample ahead: with nothing ahead they are synchronous, and after a kill they are the same."""

import csv
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import stage_runs
import torch
from stage_runs import at_training_step
from test_several_processes import both, weights, with_batch

POLICY = "results/pretrain/metrics.json"
ROLLOUTS = 7  # of 4 updates, the last one of 2
# staleness and whether the loss corrects for it
ARMS = [(1, True), (4, True), (4, False)]


def config(ahead: int | None, correction: bool = True) -> dict[str, Any]:
    keys = {} if ahead is None else {"max_staleness": ahead}
    args = stage_runs.GRPO["args"] | {
        "vllm_importance_sampling_correction": correction,
        "vllm_importance_sampling_mode": "token_truncate",
    }
    return {**stage_runs.GRPO, "sampler": "lean", "args": args, **keys}


def run(base: Path, folder: Path, ahead: int | None, correction: bool = True, trap: Any = None) -> int:
    if not folder.exists():
        shutil.copytree(base, folder, ignore=shutil.ignore_patterns("*.txt"))
    command = stage_runs.command("grpo", config(ahead, correction), policy=POLICY)
    return stage_runs.run("grpo", command, folder, trap)


def curve(folder: Path) -> list[dict[str, str]]:
    with (folder / "results/grpo/curve.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def unbroken(base: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[Any, Path]:
    """Runs that were never killed, by their staleness and correction."""
    folders = {}
    for arm in [(None, True), (0, True), *ARMS]:
        folders[arm] = tmp_path_factory.mktemp("unbroken") / "run"
        assert run(base, folders[arm], *arm) == 0, (folders[arm] / "err.txt").read_text()
    return folders


@pytest.mark.slow
def test_nothing_ahead_is_synchronous_to_the_bit(unbroken: dict[Any, Path]):
    plain, ahead = unbroken[None, True], unbroken[0, True]
    rows = [row for row in curve(ahead) if not row["metric"].startswith("staleness/")]
    assert rows == curve(plain)
    shown = {row["value"] for row in curve(ahead) if row["metric"].startswith("staleness/")}
    assert {float(value) for value in shown} == {0.0}
    different = ("curve.csv", "metrics.json")
    outputs = [stage_runs.outputs(folder, "grpo") for folder in (plain, ahead)]
    same = [{name: made[name] for name in made if Path(name).name not in different} for made in outputs]
    assert any("safetensors" in name for name in same[0])
    assert same[0] == same[1]


@pytest.mark.slow
@pytest.mark.parametrize(("ahead", "correction"), ARMS)
def test_the_curve_has_the_staleness_of_each_rollout(ahead: int, correction: bool, unbroken: dict[Any, Path]):
    folder = unbroken[ahead, correction]
    for name in ("staleness/mean", "staleness/max"):
        values = [float(row["value"]) for row in curve(folder) if row["metric"] == name]
        assert values == [min(rollout, ahead) for rollout in range(ROLLOUTS)]
    samples = [float(row["value"]) for row in curve(folder) if row["metric"] == "samples"]
    assert samples == [16.0 * (rollout + 1) for rollout in range(ROLLOUTS)]
    prompts = (folder / "results/grpo/completions.jsonl").read_text().count("\n")
    assert prompts == 16 * ROLLOUTS


@pytest.mark.slow
@pytest.mark.parametrize(("ahead", "correction"), ARMS)
@pytest.mark.parametrize(
    "step", [2, 11, 14, 25]
)  # before a checkpoint; in a rollout; in another epoch; at the end
def test_killed_and_rerun(step: int, ahead: int, correction: bool, base: Path, unbroken: Any, tmp_path: Path):
    folder = tmp_path / "killed"
    assert run(base, folder, ahead, correction, partial(at_training_step, step)) == -9
    assert run(base, folder, ahead, correction) == 0, (folder / "err.txt").read_text()
    expected = stage_runs.outputs(unbroken[ahead, correction], "grpo")
    assert stage_runs.outputs(folder, "grpo") == expected


@pytest.mark.slow
def test_two_processes_have_their_parts_of_each_rollout_in_flight(base: Path, tmp_path: Path):
    """With nothing ahead they learn what they learn in synchronous training; with one they do not."""
    args = {"steps_per_generation": None, "generation_batch_size": 16, "max_steps": 12}
    args["vllm_importance_sampling_correction"] = True
    plain = {**with_batch(stage_runs.GRPO, gradient_accumulation_steps=2, **args), "sampler": "lean"}
    learned = []
    for ahead in (None, 0, 1):
        folder = tmp_path / str(ahead)
        shutil.copytree(base, folder, ignore=shutil.ignore_patterns("*.txt"))
        keys = {} if ahead is None else {"max_staleness": ahead}
        command = stage_runs.command("grpo", plain | keys, policy=POLICY)
        assert both("grpo", command, folder) == [0, 0], (folder / "err.txt").read_text()
        learned.append(weights(folder / "checkpoints/grpo"))
    assert all(torch.equal(weight, learned[1][name]) for name, weight in learned[0].items())
    assert not all(torch.equal(weight, learned[2][name]) for name, weight in learned[0].items())
