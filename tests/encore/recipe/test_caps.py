"""The cap of completions by step."""

from encore.recipe.caps import of_stage, start


def test_caps_are_in_order_of_steps_and_may_come_from_json():
    caps = of_stage({"caps": {"120": 96, "0": 56, "40": 64}, "args": {}})
    assert list(caps.items()) == [(0, 56), (40, 64), (120, 96)]
    assert [caps[start(caps, step)] for step in (0, 39, 40, 119, 120, 500)] == [56, 56, 64, 64, 96, 96]


def test_without_caps_the_one_of_args_holds_from_the_start():
    assert of_stage({"args": {"max_completion_length": 7}}) == {0: 7}
    assert of_stage({"args": {}}) == {}
