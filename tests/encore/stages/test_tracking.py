"""`--track`: a tracker sees what curve.csv has, once; the stage makes the same bits, and says the same.

TensorBoard is the real one (of the extra `test`); wandb and trackio are stand-ins at the calls that
transformers' callbacks make.
"""

import csv
import json
import re
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import stage_runs
import test_reward_model
from stage_runs import PRETRAIN, command
from test_live_curve import GRADIENT, in_step_11
from test_reward_model import ready as reward_ready  # noqa: F401

pytestmark = pytest.mark.slow  # runs stages

STANDINS = Path(__file__).parents[2] / "helpers/trackers"
SEEN = "train/loss"


def with_stand_ins() -> None:
    for name in ("wandb", "trackio"):
        sys.modules.pop(name, None)
    sys.path.insert(0, str(STANDINS))


def with_stand_ins_killed() -> None:
    with_stand_ins()
    in_step_11()


def pretrain(folder: Path, tracker: str, trap: Any) -> int:
    return stage_runs.run("pretrain", [*command("pretrain", PRETRAIN), "--track", tracker], folder, trap)


def losses(folder: Path, kind: str = "pretrain") -> list[tuple[int, float]]:
    """Step and loss of curve.csv."""
    with (folder / f"results/{kind}/curve.csv").open() as file:
        rows = [*csv.DictReader(file)]
    return [(int(row["step"]), float(row["value"])) for row in rows if row["metric"] == "loss"]


def events(folder: Path) -> list[tuple[int, float]]:
    """Step and loss of a run of TensorBoard, as its page shows them."""
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    accumulator = reader.EventAccumulator(str(folder)).Reload()
    return [(event.step, event.value) for event in accumulator.Scalars(SEEN)]


def lines(folder: Path) -> list[str]:
    """What a stage has printed without its numbers, nor its steps, of which a slow machine shows more."""
    said = (folder / "out.txt").read_text().splitlines()
    return [re.sub(r"[\d.:]+", "#", line) for line in said if "] step " not in line]


def calls(path: Path, call: str) -> list[dict[str, Any]]:
    return [row for row in map(json.loads, path.read_text().splitlines()) if row["call"] == call]


def logged(rows: Iterable[dict[str, Any]]) -> list[tuple[int, float]]:
    values = [row["values"] for row in rows]
    return [(value["train/global_step"], value[SEEN]) for value in values if SEEN in value]


def test_tensorboard_of_a_killed_stage(base: Path, tmp_path: Path):
    pytest.importorskip("tensorboard", reason="it is in the extra `test`")
    runs = tmp_path / "runs/r-cpu/a/seed3/pretrain"
    runs.mkdir(parents=True)
    (runs / "events.of.an.older.training").touch()
    assert pretrain(tmp_path, "tensorboard", in_step_11) == -9
    assert [step for step, _ in events(runs)] == [3, 6, 9]
    assert pretrain(tmp_path, "tensorboard", None) == 0, (tmp_path / "err.txt").read_text()
    seen = events(runs)
    assert [step for step, _ in seen] == [3, 6, 9, 12, 15, 18]
    assert seen == [(step, pytest.approx(value, rel=1e-6)) for step, value in losses(tmp_path)]
    assert stage_runs.outputs(tmp_path, "pretrain") == stage_runs.outputs(base, "pretrain")
    assert not (runs / "events.of.an.older.training").exists()


def test_a_loop_of_our_own_is_followed_too(base: Path, tmp_path: Path):
    pytest.importorskip("tensorboard", reason="it is in the extra `test`")
    folder = stage_runs.fresh("grpo", base, tmp_path / "run")
    arguments = command("policy_gradient", GRADIENT, policy="results/pretrain/metrics.json")
    arguments += ["--track", "tensorboard"]
    assert stage_runs.run("policy_gradient", arguments, folder) == 0, (folder / "err.txt").read_text()
    seen = events(folder / "runs/r-cpu/a/seed3/policy_gradient")
    assert len(seen) > 2
    assert seen == [
        (step, pytest.approx(value, rel=1e-6)) for step, value in losses(folder, "policy_gradient")
    ]
    assert "incorrect so we dropped" not in (folder / "err.txt").read_text()  # of what is not a number


def test_wandb_of_a_killed_stage_goes_on_in_its_run(base: Path, tmp_path: Path):
    notes = tmp_path / "wandb.jsonl"
    assert pretrain(tmp_path, "wandb", with_stand_ins_killed) == -9
    assert pretrain(tmp_path, "wandb", with_stand_ins) == 0, (tmp_path / "err.txt").read_text()
    first, second = calls(notes, "init")
    assert first == second
    about = {"project": "r-cpu", "name": "a/seed3/pretrain", "resume": "allow", "dir": "runs"}
    assert {key: first[key] for key in about} == about
    assert logged(calls(notes, "log"))[-4:] == losses(tmp_path)[-4:]  # from the checkpoint of step 8 on
    assert len(calls(notes, "finish")) == 1
    assert stage_runs.outputs(tmp_path, "pretrain") == stage_runs.outputs(base, "pretrain")
    assert not list((tmp_path / "checkpoints/pretrain").glob("wandb*"))


def test_trackio_and_the_console_stays_as_it_is(base: Path, tmp_path: Path):
    notes = tmp_path / "trackio.jsonl"
    assert pretrain(tmp_path, "trackio", with_stand_ins) == 0, (tmp_path / "err.txt").read_text()
    (begun,) = calls(notes, "init")
    about = {"project": "r-cpu", "name": "a/seed3/pretrain", "resume": "allow", "space": None}
    assert begun == {"call": "init", **about}
    assert logged(calls(notes, "log")) == losses(tmp_path)
    assert len(calls(notes, "finish")) == 1
    assert lines(tmp_path) == lines(base)
    assert "* Trackio says something" in (tmp_path / "err.txt").read_text()


@pytest.mark.slow
def test_each_member_of_an_ensemble_has_a_run(reward_ready: Path, tmp_path: Path):  # noqa: F811
    folder = tmp_path / "run"
    shutil.copytree(reward_ready, folder)
    args = test_reward_model.CONFIG["args"] | {"max_steps": 6}
    arguments = command("reward_model", test_reward_model.CONFIG | {"args": args}, **test_reward_model.INPUTS)
    status = stage_runs.run("reward_model", [*arguments, "--track", "wandb"], folder, with_stand_ins)
    assert status == 0, (folder / "err.txt").read_text()
    begun = calls(folder / "wandb.jsonl", "init")
    assert [one["name"] for one in begun] == [f"a/seed3/reward_model/member{number}" for number in (0, 1)]
    assert len({one["id"] for one in begun}) == len(calls(folder / "wandb.jsonl", "finish")) == 2


def test_a_tracker_that_refuses_is_told_in_one_line(tmp_path: Path):
    assert pretrain(tmp_path, "wandb", refused) == 2
    assert "--config track=wandb: api_key not configured (no-tty)." in stage_runs.error_line(tmp_path)


def refused() -> None:
    import os

    os.environ["WANDB_REFUSES"] = "1"  # the server of the stages has the environment of its own start
    with_stand_ins()
