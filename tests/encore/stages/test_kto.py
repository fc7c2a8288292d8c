"""Stage `kto`: it resumes with the same bits after a kill; what it learns from, measures and refuses."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import stage_runs
import test_dpo
from stage_runs import at_training_step

from encore.errors import UserError
from encore.learning.kto import completions, single_completions
from encore.recipe.kinds import read_stage

ARGS = {name: value for name, value in test_dpo.CONFIG["args"].items() if name != "loss_type"}
CONFIG: dict[str, Any] = {"pairs": "all", "args": ARGS | {"undesirable_weight": 1.5, "max_steps": 12}}
INPUTS = test_dpo.INPUTS
ready = test_dpo.ready  # a fixture
PAIRS = [{"prompt_ids": [row], "chosen_ids": [row, 1], "rejected_ids": [row, 2]} for row in range(3)]


def run(folder: Path, trap: Any = None, **keys: Any) -> int:
    return stage_runs.run("kto", stage_runs.command("kto", CONFIG | keys, **INPUTS), folder, trap)


def killed_after_the_first_epoch() -> None:
    at_training_step(2 * 9 + 2)  # the middle of step 10; the last checkpoint is of step 8


@pytest.mark.slow
@pytest.mark.parametrize("unpaired", [False, True])
def test_killed_and_rerun(ready: Path, tmp_path: Path, unpaired: bool):
    folders = [tmp_path / name for name in ("whole", "killed")]
    for folder in folders:
        shutil.copytree(ready, folder)
    assert run(folders[0], unpaired=unpaired) == 0, (folders[0] / "err.txt").read_text()
    assert run(folders[1], killed_after_the_first_epoch, unpaired=unpaired) == -9
    assert run(folders[1], unpaired=unpaired) == 0, (folders[1] / "err.txt").read_text()
    assert "resuming from step 8" in (folders[1] / "out.txt").read_text()
    unbroken, again = (stage_runs.outputs(folder, "kto") for folder in folders)
    assert unbroken == again
    metrics = json.loads(unbroken["metrics.json"])["metrics"]
    assert metrics["pairs"] == 3 * 11 + 1
    assert metrics["completions"] == metrics["pairs"] * (1 if unpaired else 2)
    assert metrics["last/kl"] >= 0
    if not unpaired:  # half the completions teach too little in 12 steps
        assert metrics["accuracy/train"] > 0.8
        assert metrics["margin/validation"] > 0


def test_each_completion_is_desirable_or_not():
    both = completions(PAIRS)
    assert [(row["completion_ids"], row["label"]) for row in both] == [
        ([0, 1], True), ([0, 2], False), ([1, 1], True), ([1, 2], False), ([2, 1], True), ([2, 2], False)
    ]  # fmt: skip
    alone = single_completions(PAIRS)
    assert [(row["completion_ids"], row["label"]) for row in alone] == [
        ([0, 1], True), ([1, 2], False), ([2, 1], True)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"per_device_train_batch_size": 1}, r"args\.per_device_train_batch_size: expected at least 2"),
        ({"beta": 0.0}, r"args\.beta: expected more than 0"),
        ({"loss_type": "apo_zero_unpaired"}, r"args\.loss_type: .*kto"),
        ({"precompute_ref_log_probs": True}, r"args\.precompute_ref_log_probs: the completions"),
        ({"label_smoothing": 0.1}, r"args\.label_smoothing: "),
    ],
)
def test_what_is_refused(args: dict[str, Any], message: str):
    with pytest.raises(UserError, match=message):
        read_stage(
            {"run": "kto", "needs": {"policy": "p", "data": "d"}, "pairs": "all", "args": ARGS | args}
        ).check_rules()
