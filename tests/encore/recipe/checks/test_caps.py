"""Caps of a grpo stage that cannot be meant are told in one line."""

import pytest

from encore.errors import UserError
from encore.recipe.caps import check_boundaries
from encore.recipe.kinds import read_stage

ARGS = {"max_steps": 200, "steps_per_generation": 4, "num_iterations": 1, "gradient_accumulation_steps": 1}


def check(caps, args):
    args = {name: value for name, value in args.items() if value is not None}
    args = {"loss_type": "grpo", **args}
    stage = {"run": "grpo", "model": {"path": "p"}, "rewards": {"accuracy": 1.0}, "caps": caps, "args": args}
    read_stage(stage).check_rules()


@pytest.mark.parametrize(
    ("caps", "args"),
    [
        ({"0": 56, "120": 96}, {}),
        ({"0": 56}, {"max_completion_length": 56}),
        ({"0": 56, "6": 57}, {"num_iterations": 3, "gradient_accumulation_steps": 2}),
        ({"0": 56, "3": 57}, {"steps_per_generation": 1, "gradient_accumulation_steps": 4}),
    ],
)
def test_sound(caps, args):
    check(caps, ARGS | args)


@pytest.mark.parametrize(
    ("caps", "args", "says"),
    [
        ({}, {}, "caps: expected the first at step 0, got none"),
        ({"4": 56}, {}, "caps: expected the first at step 0, got 4"),
        ({"0": 56, "120": 56}, {}, r"caps\.120: expected more than 56, got 56"),
        ({"0": 56, "120": 96, "40": 40}, {}, r"caps\.40: expected more than 56, got 40"),
        ({"0": 56, "121": 96}, {}, r"caps\.121: a rollout lasts 4 steps.*; nearest: 120"),
        ({"0": 56, "1": 96}, {}, r"caps\.1: .*; nearest: 4"),
        ({"0": 56, "4": 96}, {"num_iterations": 2}, r"caps\.4: a rollout lasts 8 steps.*; nearest: 8"),
        ({"0": 56, "200": 96}, {}, r"caps\.200: expected less than args\.max_steps 200"),
        ({"0": 56, "4": 96}, {"max_steps": None}, r"args\.max_steps: missing"),
        (
            {"0": 56},
            {"max_completion_length": 64},
            "64, but caps begins with 56; remove one",
        ),
    ],
)
def test_senseless(caps, args, says):
    with pytest.raises(UserError, match=says) as error:
        check(caps, ARGS | args)
    assert "\n" not in str(error.value)


def test_where_the_batch_decides_how_long_a_rollout_lasts_the_stage_checks():
    without = {name: value for name, value in ARGS.items() if name != "steps_per_generation"}
    check({"0": 56, "121": 96}, without | {"generation_batch_size": 64})
    with pytest.raises(UserError, match=r"caps\.121: .*; nearest: 120"):
        check_boundaries({0: 56, 121: 96}, 4, 1)
