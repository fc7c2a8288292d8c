"""The weights of two tiny stages, to the bit: an upgrade that changes what a recipe gives is named."""

from pathlib import Path

import pins
import pytest

from encore.runtime import sentinel


@pytest.mark.parametrize(("kind", "steps"), [("pretrain", 18), ("grpo", 26)])
def test_weights_are_those_of_the_pinned_versions(kind: str, steps: int, trained: Path):
    made = sentinel.read_sentinel(trained / f"results/{kind}/metrics.json")
    pins.hold(f"weights after {steps} steps of {kind}", made["digest"])
