"""While a stage trains its curve stands beside its training state, and outlives a kill."""

from pathlib import Path
from typing import Any

import pytest
import stage_runs
from stage_runs import PRETRAIN, TASK, TEMPLATE, at_training_step, command

pytestmark = pytest.mark.slow  # runs stages

GRADIENT: dict[str, Any] = {
    "task": TASK,
    "template": TEMPLATE,
    "problems": 4,
    "rewards": {"accuracy": 1.0, "format": 0.5},
    "args": {
        "learning_rate": 1e-3,
        "epochs": 3,
        "inner_steps": 2,
        "prompts_per_epoch": 2,
        "num_generations": 2,
        "delta": "centered",
        "loss": "clipped",
        "max_completion_length": 8,
    },
}


def in_step_11() -> None:
    at_training_step(4 * 10 + 1)  # the last checkpoint is of step 8, the last log line of step 9


def once_begun() -> None:
    from encore.runtime import live_curve

    plain = live_curve.begin

    def begin(*args: Any) -> None:
        plain(*args)
        stage_runs.die()

    live_curve.begin = begin


def in_the_third_epoch() -> None:
    """Die while a stage `policy_gradient` reports its third rollout."""
    from encore.runtime.progress import Progress

    plain = Progress.step

    def step(self: Any, number: int, *args: Any, **kwargs: Any) -> None:
        if number > 4:
            stage_runs.die()
        plain(self, number, *args, **kwargs)

    Progress.step = step  # type: ignore[method-assign]


def steps(path: Path) -> list[int]:
    """The steps of a curve, each once; every line of it is whole."""
    text = path.read_text()
    assert text.endswith("\n")
    rows = [line.split(",") for line in text.splitlines()]
    assert {len(row) for row in rows} == {3}
    return sorted({int(step) for step, *_ in rows[1:]})


def test_killed_then_resumed_then_done(base: Path, tmp_path: Path):
    live, final = tmp_path / "checkpoints/pretrain/curve.csv", tmp_path / "results/pretrain/curve.csv"
    whole = (base / "results/pretrain/curve.csv").read_text()
    assert stage_runs.run("pretrain", command("pretrain", PRETRAIN), tmp_path, in_step_11) == -9
    assert not final.exists()
    assert steps(live) == [3, 6, 9]
    assert whole.startswith(live.read_text())
    with live.open("a") as file:
        file.write("9,lo")  # as by a write that was cut
    assert stage_runs.run("pretrain", command("pretrain", PRETRAIN), tmp_path, once_begun) == -9
    assert steps(live) == [3, 6]  # of step 9 the checkpoint of step 8 knows nothing
    assert stage_runs.run("pretrain", command("pretrain", PRETRAIN), tmp_path) == 0
    assert final.read_text() == whole
    assert not live.exists()
    said = (tmp_path / "out.txt").read_text()
    assert "starting at step 0 of 18; its curve so far: checkpoints/pretrain/curve.csv\n" in said


def test_a_stage_without_checkpoints_has_one_too(base: Path, tmp_path: Path):
    folder = stage_runs.fresh("grpo", base, tmp_path / "run")
    arguments = command("policy_gradient", GRADIENT, policy="results/pretrain/metrics.json")
    live = folder / "checkpoints/policy_gradient/curve.csv"
    assert stage_runs.run("policy_gradient", arguments, folder, in_the_third_epoch) == -9
    so_far = live.read_text()
    assert steps(live)[-1] > 4
    assert stage_runs.run("policy_gradient", arguments, folder) == 0, (folder / "err.txt").read_text()
    assert (folder / "results/policy_gradient/curve.csv").read_text().startswith(so_far)
    assert not live.exists()
