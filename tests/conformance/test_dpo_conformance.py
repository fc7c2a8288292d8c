"""The stage `dpo` minimises what its papers write, in value and gradient of every optimizer step."""

import inspect
import re
from pathlib import Path

import pytest
import torch
from compare import TOLERANCE, worst
from dpo_cases import CASES, LAYOUTS, judge, sigmoid, watch
from torch import Tensor
from trl import DPOTrainer

from encore.recipe import loss_types

FAST = {("sigmoid", "accumulated")}
GRID = [
    pytest.param(case, layout, marks=() if (case, layout) in FAST else pytest.mark.slow)
    for case in CASES
    for layout in LAYOUTS
]


@pytest.mark.parametrize(("case", "layout"), GRID)
def test_value_and_gradient(case: str, layout: str, folder: Path):
    seen = watch(folder, case, layout)
    size, accumulate, steps = LAYOUTS[layout]
    assert [len(pairs) for pairs in seen.examples] == [size * accumulate] * steps
    outcomes = judge(seen, CASES[case][0], folder)
    assert worst(outcomes) < TOLERANCE, [(one.value_error, one.gradient_error) for one in outcomes]
    assert outcomes[0].expected.norm() > 0.1


def test_the_reference_and_the_dropout(folder: Path):
    """The reference model is the input, and stays so; dropout of the policy's configuration is off."""
    seen = watch(folder, "sigmoid", "accumulated")
    now = dict(seen.trainer.ref_model.named_parameters())
    assert all(torch.equal(now[name], then) for name, then in seen.reference.items())
    assert not any(weight.requires_grad or weight.grad is not None for weight in now.values())
    assert any(not torch.equal(seen.reference[name], w) for name, w in seen.weights[0].items())
    assert any(not torch.equal(seen.weights[0][name], w) for name, w in seen.weights[-1].items())
    assert seen.trainer.model.config.attention_dropout == 0.5
    assert {layer.self_attn.attention_dropout for layer in seen.trainer.model.model.layers} == {0.0}


def test_what_the_pairs_hold(folder: Path):
    """Ragged prompts and completions; the end of sequence where a reply came to it, and nowhere else."""
    seen = watch(folder, "sigmoid", "accumulated")
    eos = seen.trainer.processing_class.eos_token_id
    rows = [(x, y) for pairs in seen.examples for x, *both in pairs for y in both]
    assert len({len(x) for x, _ in rows}) > 1
    assert len({len(y) for _, y in rows}) > 5
    assert {y[-1] == eos for _, y in rows} == {True, False}
    assert not any(eos in y[:-1] for _, y in rows)


def test_means_of_log_probabilities_would_be_found(folder: Path):
    def mean(chosen: Tensor, rejected: Tensor, long: int, short: int) -> Tensor:
        return sigmoid(chosen / long, rejected / short)

    assert worst(judge(watch(folder, "sigmoid", "accumulated"), mean, folder)) > 1000 * TOLERANCE


def test_the_losses_are_trls():
    """Each name is a branch of TRL's loss: an upgrade that adds or removes one fails here."""
    source = inspect.getsource(DPOTrainer._compute_loss)
    assert set(re.findall(r'loss_type == "(\w+)"', source)) == set(loss_types.DPO_LOSSES)
