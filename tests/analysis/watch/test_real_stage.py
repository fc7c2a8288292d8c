"""A stage of GRPO, killed in the midst of its work, is watched by what it has left."""

import functools
import shutil
from pathlib import Path

import pytest
import stage_runs

from analysis.watch.watcher import Watcher

PATH = "r/cpu/a/seed3/grpo"


def arguments() -> list[str]:
    """Those of a stage whose files lie where the workflow has them."""
    given = stage_runs.arguments_of("grpo")
    for option, folder in (
        ("--checkpoints", f"checkpoints/{PATH}/0123456789ab"),
        ("--out", f"results/{PATH}"),
    ):
        given[given.index(option) + 1] = folder + ("/metrics.json" if option == "--out" else "")
    return given


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("real")
    assert stage_runs.run("pretrain", stage_runs.arguments_of("pretrain"), root) == 0
    return root


@pytest.mark.slow
def test_a_real_stage_tells_its_steps_curve_and_rollouts(root: Path):
    (root / "err.txt").unlink()
    log = root / "results" / PATH / "train.log"
    log.parent.mkdir(parents=True)
    log.symlink_to(root / "err.txt")  # where a forked stage has what the workflow has in train.log
    stage_runs.run("grpo", arguments(), root, functools.partial(stage_runs.at_training_step, 12))
    watcher = Watcher(root / "results", ())
    (job,) = watcher.overview().active
    assert (job.state, job.what, job.counted, job.total) == ("running", "step", 10, 26)
    charts = {chart.label.split()[0]: chart.lines for chart in watcher.run("r/cpu", "grpo").charts}
    assert [*charts] == ["Reward", "Accuracy:", "Length", "Entropy,", "KL"]
    assert all(lines[0].running and 8 <= lines[0].steps[-1] <= 10 for lines in charts.values())
    rollout = watcher.rollout(PATH)
    assert {len(question.group) for question in rollout.questions} == {4}
    assert all(row.advantage is not None for question in rollout.questions for row in question.group)
    watcher = Watcher(root / "results", ())
    assert stage_runs.run("grpo", arguments(), root) == 0
    (run,) = watcher.overview().runs
    assert run.counts == {"done": 1}
    assert watcher.rollout(PATH).step > rollout.step
    assert watcher.run("r/cpu", "grpo").charts[0].lines[0].steps[-1] == 26
    shutil.rmtree(root / "checkpoints/r")  # the results alone, as of a run that was copied
    assert len(watcher.run("r/cpu", "grpo").charts) == 5
