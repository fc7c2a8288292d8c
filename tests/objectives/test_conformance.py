"""What the stage optimises is what the paper's equation says, in value and gradient of every optimizer step.

Through gradient accumulation, several minibatches a rollout and several epochs over it; with truncated,
masked and ragged completions, a group of equal rewards, and clips that cut.
"""

import dataclasses
import math
from functools import partial

import pytest
import torch
from cases import CASES
from compare import TOLERANCE, worst
from observe import CAP, GROUP, LAYOUTS

# each part of the trainers where it is hardest; the whole grid is slow
FAST = {
    ("reinforce", "windows"),
    ("rloo", "epochs"),
    ("grpo-kl", "epochs"),
    ("grpo-process", "minibatches"),
    ("dapo-dynamic", "windows"),
    ("cispo", "windows"),
    ("gspo", "minibatches"),
    ("gspo-token", "windows"),
}
GRID = [
    pytest.param(case, layout, marks=() if (case, layout) in FAST else pytest.mark.slow)
    for case in CASES
    for layout in LAYOUTS
]
CLIPPED = [
    pytest.param(case, layout, marks=() if (case, layout) in FAST else pytest.mark.slow)
    for case, layout in [
        ("grpo-kl", "epochs"),
        ("grpo-overlong", "minibatches"),
        ("rloo-clipped", "windows"),
        ("dapo-dynamic", "windows"),
        ("dr_grpo", "minibatches"),
        ("bnpo", "windows"),
        ("cispo", "epochs"),
        ("gspo", "epochs"),
        ("gspo-token", "minibatches"),
    ]
]


@pytest.mark.parametrize(("case", "layout"), GRID)
def test_value_and_gradient(case: str, layout: str, watch, judge):
    seen = watch(case, layout)
    outcomes = judge(CASES[case], seen)
    shape = LAYOUTS[layout]
    assert len(outcomes) == 2 * shape["slices"] * shape["epochs"] // shape["accumulate"]
    assert worst(outcomes) < TOLERANCE, [(one.value_error, one.gradient_error) for one in outcomes]
    assert any(one.expected.norm() > 0.1 for one in outcomes)
    assert [update.loss for update in seen.updates] == pytest.approx(seen.logged)


@pytest.mark.parametrize(("case", "layout"), CLIPPED)
def test_the_clip_matters(case: str, layout: str, watch, judge):
    """Without it the comparison would fail, so it has cut something."""
    held = CASES[case].objective
    assert isinstance(held, partial)
    free = partial(held.func, **{**held.keywords, "low": math.inf, "high": math.inf})
    outcomes = judge(dataclasses.replace(CASES[case], objective=free), watch(case, layout))
    assert worst(outcomes) > 1000 * TOLERANCE


def test_what_a_rollout_holds(watch):
    """Prompts and completions of many lengths, some cut off; groups of equal and of mixed rewards."""
    seen = watch("grpo-kl", "epochs")
    eos = seen.trainer.processing_class.eos_token_id
    ids = [c for rollout in seen.rollouts for c in rollout.completions]
    assert len({len(c) for c in ids}) > 5
    assert any(len(c) == CAP and c[-1] != eos for c in ids)
    rewards = torch.tensor([r for rollout in seen.rollouts for r in rollout.rewards]).view(-1, GROUP, 2)
    spread = rewards.sum(dim=2).std(dim=1)
    assert (spread == 0).any()
    assert (spread > 0).any()
    assert len({len(p) for rollout in seen.rollouts for p in rollout.prompts}) > 1
