"""Process supervision: DeepSeekMath's sum over later steps."""

import statistics

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from encore.objectives import process_supervision

WIDTH = 12
OUTPUT = st.lists(st.tuples(st.integers(0, WIDTH - 1), st.sampled_from([0.0, 1.0])), min_size=1, max_size=5)
GROUPS = st.integers(2, 4).flatmap(
    lambda size: st.lists(st.lists(OUTPUT, min_size=size, max_size=size), min_size=1, max_size=3)
)


@given(GROUPS)
@settings(max_examples=30)
def test_advantages_are_the_equation(groups):
    found = process_supervision.advantages(
        [output for group in groups for output in group], len(groups[0]), WIDTH
    )
    for group, rows in zip(groups, found.view(len(groups), -1, WIDTH), strict=True):
        rewards = [reward for output in group for _, reward in output]
        mean, std = statistics.fmean(rewards), statistics.stdev(rewards)
        for output, row in zip(group, rows, strict=True):
            for t in range(WIDTH):
                expected = sum((reward - mean) / (std + 1e-4) for end, reward in output if end >= t)
                assert row[t].item() == pytest.approx(expected, abs=1e-5)


def test_a_step_pays_the_tokens_up_to_its_end_alone():
    right, wrong = [(2, 1.0), (5, 1.0)], [(3, 0.0), (5, 0.0)]
    found = process_supervision.advantages([right, wrong], 2, 8)
    assert found[0, :3].eq(found[0, 0]).all()
    torch.testing.assert_close(found[0, 0], 2 * found[0, 5])  # two good steps ahead, then one
    assert found[:, 6:].eq(0).all()
    assert process_supervision.advantages([[(3, 1.0)], [(2, 1.0)]], 2, 4).eq(0).all()  # no variance
    assert process_supervision.advantages([[(3, 1.0)]], 1, 4).eq(0).all()  # no standard deviation


def test_rows_of_another_process_may_be_longer():
    steps = [[(2, 1.0)], [(9, 0.0)], [(3, 1.0)], [(4, 0.0)]]
    found = process_supervision.advantages(steps, 4, 5)
    assert found.shape == (4, 5)
    assert torch.equal(found, process_supervision.advantages(steps, 4, 12)[:, :5])
