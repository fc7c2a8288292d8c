"""The stage `kto` minimises what its paper writes, in value and gradient of every optimizer step."""

import math
from pathlib import Path

import pytest
from compare import TOLERANCE, worst
from kto_cases import LAYOUTS, WEIGHTS, judge, watch

FAST = {("uneven", "accumulated")}
GRID = [
    pytest.param(case, layout, marks=() if (case, layout) in FAST else pytest.mark.slow)
    for case in WEIGHTS
    for layout in LAYOUTS
]


@pytest.mark.parametrize(("case", "layout"), GRID)
def test_value_and_gradient(case: str, layout: str, folder: Path):
    seen = watch(folder, case, layout)
    size, accumulate, steps = LAYOUTS[layout]
    assert [[len(rows) for rows in step] for step in seen.examples] == [[size] * accumulate] * steps
    outcomes = judge(seen, WEIGHTS[case], folder)
    assert worst(outcomes) < TOLERANCE, [(each.value_error, each.gradient_error) for each in outcomes]
    assert outcomes[0].expected.norm() > 0.01


def test_a_kl_below_nothing_would_be_found(folder: Path):
    """The estimate is below 0 in some micro-batch, and no less than 0 in the loss."""
    seen = watch(folder, "uneven", "accumulated")
    assert worst(judge(seen, WEIGHTS["uneven"], folder, floor=-math.inf)) > 1000 * TOLERANCE


def test_both_completions_of_a_pair_or_one(folder: Path):
    """Unpaired, no two completions come from one pair, and half of them are desirable."""
    both = watch(folder, "uneven", "accumulated")
    alone = watch(folder, "uneven", "accumulated", unpaired=True)
    shares = []
    for seen in (both, alone):
        rows = [row for step in seen.examples for batch in step for row in batch]
        shares.append(sum(desirable for _, _, desirable in rows) / len(rows))
        assert {desirable for _, _, desirable in rows} == {True, False}
    assert shares == pytest.approx([0.5, 0.5], abs=0.2)
    assert len(alone.trainer.train_dataset) * 2 == len(both.trainer.train_dataset)
