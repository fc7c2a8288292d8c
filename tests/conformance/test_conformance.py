"""What the stage optimises is what the paper's equation says, in value and gradient of every optimizer step.

Through gradient accumulation, several minibatches a rollout and several epochs over it; with truncated,
masked and ragged completions, a group of equal rewards, and clips that cut.
"""

import dataclasses
import math
from functools import partial

import pytest
import references as paper
import torch
from cases import CASES
from compare import TOLERANCE, compare, worst
from hypothesis import given, settings
from hypothesis import strategies as st
from observe import CAP, GROUP, LAYOUTS, PROMPTS, arguments
from observe import watch as observe_stage

from encore.rewards import rules

# each part of the trainers where it is hardest; the whole grid is slow
FAST = {
    ("reinforce", "windows"),
    ("rloo", "windows"),
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
    # the trainer adds up float32 losses, whose sum is 0 where each ratio is 1
    # the trainer adds up float32 losses, whose sum is 0 where each ratio is 1
    assert [update.loss for update in seen.updates] == pytest.approx(seen.logged, rel=1e-6, abs=1e-7)


def test_policy_and_reference_have_the_temperature_of_the_rollouts(folder):
    args = arguments("windows", beta=0.3, temperature=0.7)
    outcomes = compare(CASES["grpo-kl"], observe_stage(folder, {"args": args}), folder)
    assert worst(outcomes) < TOLERANCE


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
    rules = torch.tensor([r for rollout in seen.rollouts for r in rollout.rewards]).view(-1, GROUP, 2)
    spread = rules.sum(dim=2).std(dim=1)
    assert (spread == 0).any()
    assert (spread > 0).any()
    assert len({len(p) for rollout in seen.rollouts for p in rollout.prompts}) > 1


@pytest.mark.parametrize("layout", ["windows", pytest.param("minibatches", marks=pytest.mark.slow)])
def test_dynamic_sampling_leaves_groups_of_mixed_outcome(layout: str, watch):
    """DAPO Eq. 11, of all that the optimizer steps were made of; and there was something to leave out."""
    seen = watch("dapo-dynamic", layout)
    for number, rollout in enumerate(seen.rollouts):
        correct = torch.tensor([row[[*seen.weights].index("accuracy")] for row in rollout.rewards])
        mixed = {
            tuple(rollout.prompts[at * GROUP])
            for at, right in enumerate(correct.view(-1, GROUP).sum(dim=1))
            if 0 < right < GROUP
        }
        pad = seen.trainer.processing_class.pad_token_id
        used = {
            tuple(token for token in ids if token != pad)
            for update in seen.updates
            if update.rollout == number
            for part in update.slices
            for ids in part.prompt_ids.tolist()
        }
        assert len(used) == PROMPTS
        assert used <= mixed
        assert len(correct) > PROMPTS * GROUP


@settings(max_examples=50)
@given(st.integers(2, 40).flatmap(lambda cap: st.tuples(st.just(cap), st.integers(1, cap - 1))), st.data())
def test_soft_overlong_reward(sizes: tuple[int, int], data: st.DataObject):
    """DAPO Eq. 13 at every length that the cap allows."""
    cap, cache = sizes
    length = data.draw(st.integers(1, cap))
    (reward,) = rules.build(["soft_overlong"], None, caps={0: cap}, cache=cache)
    found = reward(prompts=["?"], completions=["x" * length], completion_ids=[[7] * length])
    assert found == pytest.approx([paper.soft_overlong(length, cap, cache)])


def test_noise(watch):
    """Of the given spread, other for each rollout, the same in all epochs over it."""
    seen = watch("grpo-noise", "one-batch-twice")
    noise = [update.slices[0].noise for update in seen.updates]
    assert torch.equal(noise[0], noise[1])
    assert torch.equal(noise[2], noise[3])
    assert noise[0].std().item() == pytest.approx(0.1, rel=0.15)
    assert noise[0].mean().abs() < 0.02
    assert not torch.isin(noise[0], noise[2]).any()
