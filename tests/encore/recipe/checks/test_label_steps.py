"""Mistakes in a `label_steps` stage, told before any job starts."""

import re
from typing import Any

import pytest

from encore.errors import UserError
from encore.recipe.kinds import read_stage

ARGS = {"num_generations": 8, "temperature": 1.0, "top_p": 1.0, "max_completion_length": 64}
ROLLOUTS: dict[str, Any] = {
    "run": "label_steps",
    "by": "rollouts",
    "needs": {"data": "s", "policy": "p"},
    "args": ARGS,
}
TASK = {"file": "steps.jsonl", "prompt": "prompt", "completion": "completions", "labels": "labels"}
DATASET: dict[str, Any] = {"run": "label_steps", "by": "dataset", "task": TASK, "template": "{question}"}


@pytest.fixture(autouse=True)
def steps(tmp_path, monkeypatch):
    """The folder with the file of steps."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / TASK["file"]).touch()


def test_what_goes_together():
    read_stage(ROLLOUTS).check_rules()
    read_stage(ROLLOUTS | {"estimation": "soft", "backend": "lean"}).check_rules()
    read_stage(DATASET | {"problems": 10}).check_rules()


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        (ROLLOUTS | {"task": TASK}, "task: by: rollouts does not use it; remove it"),
        (ROLLOUTS | {"needs": {"policy": "p"}}, "needs.data: missing; by: rollouts continues from"),
        (ROLLOUTS | {"args": {"temperature": 1.0}}, "args.num_generations: missing"),
        (DATASET | {"estimation": "soft"}, "estimation: by: dataset does not use it; remove it"),
        (DATASET | {"needs": {"data": "s"}}, "needs.data: by: dataset does not use it; remove it"),
        (
            {key: value for key, value in DATASET.items() if key != "template"},
            "template: missing; by: dataset",
        ),
    ],
)
def test_what_does_not(stage, says):
    with pytest.raises(UserError, match=re.escape(says)):
        read_stage(stage).check_rules()
