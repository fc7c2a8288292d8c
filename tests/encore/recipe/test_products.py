"""What a stage makes and what a role takes must fit: a model, or data."""

import copy

import pytest
from scored_stages import SAMPLE

from encore.errors import UserError

SFT = {
    "run": "sft",
    "needs": {"policy": "tiny/pretrain", "data": "sample"},
    "args": {"learning_rate": 1e-4, "lr_scheduler_type": "constant"},
}


@pytest.fixture
def ladder(folder):
    """Recipe `paper` with rejection sampling and the fine-tuning that follows it."""
    del folder.specs["paper"]["scales"]["paper"]
    folder.set("paper", "stages/sample", copy.deepcopy(SAMPLE))
    folder.set("paper", "stages/sft", copy.deepcopy(SFT))
    return folder


def test_data_feed_a_fine_tuning(ladder):
    assert ladder.load()["paper"].layers.content["stages"]["sft"]["needs"]["data"] == "sample"


@pytest.mark.parametrize(
    ("keys", "value", "says"),
    [
        (
            "stages/sft/needs/data",
            "grpo",
            "stages.sft.needs.data: stage grpo makes a model; expected one that makes demonstrations",
        ),
        (
            "stages/sft/needs/policy",
            "sample",
            "stages.sft.needs.policy: stage sample makes demonstrations; expected one that makes a model",
        ),
        ("stages/sft/needs", {"policy": "tiny/pretrain"}, "stages.sft.needs.data: missing"),
        (
            "evals/checkpoints/after",
            "sample",
            "evals.checkpoints.after: sample is demonstrations; expected a model",
        ),
        (
            "evals/checkpoints/after",
            "sft.data",
            "evals.checkpoints.after: sft.data is demonstrations; expected a model",
        ),
        (
            "stages/sample/args/num_generation",
            3,
            'stages.sample.args.num_generation: unknown key; did you mean "num_generations"?',
        ),
    ],
)
def test_a_mistake_is_one_line(ladder, keys, value, says):
    ladder.set("paper", keys, value)
    with pytest.raises(UserError) as error:
        ladder.load()
    assert says in str(error.value)


def test_a_stage_that_a_scale_deletes_and_an_arm_writes_again_needs_its_kind(ladder):
    ladder.set("paper", "scales/cpu/stages", {"sft": None, "sample": None})
    ladder.set("paper", "arms/hot/stages/sft", {"args": {"learning_rate": 1e-5}})
    with pytest.raises(UserError) as error:
        ladder.load()
    assert "stages.sft.run: missing (scale cpu, arm hot)" in str(error.value)
