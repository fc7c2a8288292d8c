"""The settings of a stage as it ran."""

import pytest

from analysis.numbers.settings import argument


@pytest.mark.parametrize(
    ("run", "name", "default"),
    [
        ("grpo", "loss_type", "dapo"),
        ("grpo", "per_device_train_batch_size", 8),  # of a class above TRL's
        ("grpo", "epsilon_high", None),
        ("dpo", "beta", 0.1),
        ("dpo", "loss_type", ("sigmoid",)),
        ("ppo", "num_generations", 1),  # of our own class
    ],
)
def test_an_argument_that_is_left_out_has_the_default_of_its_class(run, name, default):
    assert argument({"run": run, "args": {}}, name) == default
    assert argument({"run": run, "args": {name: 7}}, name) == 7
