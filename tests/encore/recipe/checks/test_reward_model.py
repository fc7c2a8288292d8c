"""Mistakes in a `reward_model` stage, told before any job starts."""

import copy
import re
from typing import Any

import pytest

from encore.errors import UserError
from encore.recipe.kinds import read_stage
from encore.runtime.environment import names_hub

CORPUS = {"documents": 8, "mixture": {"direct": 1.0}}
SHOWN = {"task": {"world": "sort"}, "template": "<user>{question}<assistant>", "corpus": CORPUS}
STARTED = {"run": "reward_model", "model": {"path": "p"}}
STAGE: dict[str, Any] = {
    **STARTED,
    "needs": {"data": "label"},
    "args": {},
    "comparisons": "grouped",
    "demonstrations": SHOWN,
}
LABELS: dict[str, Any] = {
    **STARTED,
    "needs": {"data": "samples"},
    "labels": "steps",
}
HUB = {"hub": "org/name", "revision": "0" * 40, "split": "train", "prompt": "p"}


def test_what_is_right_passes():
    read_stage(STAGE).check_rules()
    other = {"data": "label", "demonstrations": "other"}
    read_stage({**STARTED, "needs": other, "comparisons": "shuffled"}).check_rules()
    read_stage(LABELS).check_rules()
    read_stage(STAGE | {"demonstrations": {"task": HUB | {"completion": "c"}}}).check_rules()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"needs": {"demonstrations": "other"}}, "demonstrations: needs.demonstrations has them"),
        ({"demonstrations": {"task": {"world": "sort"}}}, "demonstrations.template: missing"),
        ({"demonstrations": SHOWN | {"task": {"world": "sorts"}}}, 'did you mean "sort"?'),
        ({"demonstrations": SHOWN | {"corpus": {"documents": 8}}}, "demonstrations.corpus.mixture: missing"),
        ({"demonstrations": {"task": HUB}}, "demonstrations.task.completion: missing"),
    ],
)
def test_mistakes(change, says):
    with pytest.raises(UserError, match=re.escape(says)):
        read_stage(STAGE | change).check_rules()


@pytest.mark.parametrize(
    ("stage", "says"),
    [
        (LABELS | {"comparisons": "grouped"}, "labels, comparisons: expected exactly one of the two"),
        ({**STARTED, "needs": {"data": "samples"}}, "labels, comparisons: expected exactly one of the two"),
        (LABELS | {"members": 3}, "members: a reward model with labels has none"),
        (LABELS | {"needs": {"data": "s", "demonstrations": "d"}}, "demonstrations: a reward model with"),
    ],
)
def test_labels_and_comparisons(stage, says):
    with pytest.raises(UserError, match=re.escape(says)):
        read_stage(stage).check_rules()


def test_a_hub_name_anywhere_needs_the_network():
    assert names_hub({"demonstrations": {"task": HUB}})
    assert names_hub({"tasks": [{"model": HUB}]})
    assert not names_hub(STAGE)


STAGES: dict[str, Any] = {
    "drawn": {
        "run": "sample",
        "needs": {"policy": "tiny/pretrain"},
        "task": {"world": "chain"},
        "template": "<user>{question}<assistant>",
        "args": {"num_generations": 4, "temperature": 1.0, "top_p": 1.0, "max_completion_length": 8},
    },
    "ranked": {"run": "label", "needs": {"data": "drawn"}, "by": "verifier"},
    "rm": {
        "run": "reward_model",
        "needs": {"policy": "tiny/pretrain", "data": "drawn"},
        "labels": "steps",
        "args": {"learning_rate": 1e-4, "lr_scheduler_type": "constant"},
    },
}


@pytest.fixture
def graded(folder):
    """Recipe `paper`, whose grpo is paid by a process reward model."""
    del folder.specs["paper"]["scales"]["paper"]
    for name, stage in STAGES.items():
        folder.set("paper", f"stages/{name}", copy.deepcopy(stage))
    folder.set("paper", "stages/grpo/rewards", {"reward_model": 1.0})
    folder.set("paper", "stages/grpo/needs/reward_model", "rm")
    folder.set("paper", "stages/grpo/aggregation", "min")
    return folder


@pytest.mark.parametrize(
    ("labels", "aggregation"), [("steps", "sum"), ("steps", "last"), ("outcome", "last")]
)
def test_what_a_reward_model_has_learnt_can_pay(graded, labels, aggregation):
    graded.set("paper", "stages/rm/labels", labels)
    graded.set("paper", "stages/grpo/aggregation", aggregation)
    graded.load()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"rm/needs/data": "ranked"},
            "stages.rm.needs.data: labels takes samples or step labels, and stage ranked makes preferences",
        ),
        (
            {"rm/labels": None, "rm/comparisons": "grouped", "grpo/aggregation": None},
            "stages.rm.needs.data: comparisons takes preferences, and stage drawn makes samples",
        ),
        (
            {"drawn/task": HUB | {"prompt": None, "question": "q"}},
            "stages.rm.labels: a world's verifier labels steps, and stage drawn is of a data set",
        ),
        (
            {
                "drawn/task": HUB | {"prompt": None, "question": "q"},
                "rm/labels": "outcome",
                "grpo/aggregation": "last",
            },
            "stages.rm.labels: stage drawn has no task.verifier, which labels answers",
        ),
        ({"rm/labels": "outcome"}, "grpo.aggregation: min needs a reward model with labels: steps, which"),
        (
            {
                "rm/labels": None,
                "rm/comparisons": "grouped",
                "rm/needs/data": "ranked",
                "grpo/aggregation": "last",
            },
            "stages.grpo.aggregation: last needs a reward model with labels, which stage rm lacks",
        ),
        (
            {"grpo/needs/reward_model": None, "grpo/rewards": {"accuracy": 1.0}},
            "rewards.reward_model is missing",
        ),
        ({"grpo/ensemble": "worst"}, "stages.grpo.ensemble: aggregation needs one model"),
    ],
)
def test_what_it_has_not_learnt_is_told_before_it_runs(graded, changes, says):
    for place, value in changes.items():
        graded.set("paper", f"stages/{place}", value)
    for stage in graded.specs["paper"]["stages"].values():
        for keys in (stage, stage["needs"], stage.get("task", {})):
            for key in [key for key, value in keys.items() if value is None]:
                del keys[key]
    with pytest.raises(UserError, match=re.escape(says)):
        graded.load()
