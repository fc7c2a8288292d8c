"""The cap of completions by step."""

import jobs

from encore.recipe.caps import start


def test_caps_are_in_order_of_steps_and_come_from_json():
    caps = jobs.stage("grpo", {"caps": {"120": 96, "0": 56, "40": 64}}).caps_by_step
    assert list(caps.items()) == [(0, 56), (40, 64), (120, 96)]
    assert [caps[start(caps, step)] for step in (0, 39, 40, 119, 120, 500)] == [56, 56, 64, 64, 96, 96]


def test_without_caps_the_one_of_args_holds_from_the_start():
    assert jobs.stage("ppo", {"args": {"max_completion_length": 7}}).caps_by_step == {0: 7}
    assert jobs.stage("grpo", {"args": {"max_completion_length": None}}).caps_by_step == {}
