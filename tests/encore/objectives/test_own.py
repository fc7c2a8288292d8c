"""An objective of one's own gives what ours would; one that breaks its contract is told."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from encore.errors import UserError
from encore.objectives import grpo, own

ARGS: Any = SimpleNamespace(
    loss_type="dapo",
    beta=0.1,
    epsilon=0.2,
    epsilon_high=0.28,
    delta=None,
    use_bias_correction_kl=False,
    off_policy_mask_threshold=None,
    entropy_coef=0.0,
    use_adaptive_entropy=False,
)
DAPO = """
from encore.objectives.grpo import clipped, importance_ratio, k3, of_step
def loss(batch, args):
    ratio = importance_ratio(batch, "token")
    return of_step(clipped(ratio, batch, args) + args.beta * k3(batch.logp, batch.ref), batch)
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """Writes mine.py; returns the objective mine:loss."""
    monkeypatch.chdir(tmp_path)

    def written(source: str):
        (tmp_path / "mine.py").write_text(source)
        return own.objective("mine:loss")

    return written


def batch() -> grpo.Batch:
    generator = torch.Generator().manual_seed(1)
    logp, old, ref = (-torch.rand(3, 5, generator=generator) for _ in range(3))
    mask = (torch.arange(5) < torch.tensor([[5], [2], [3]])).long()
    advantage = torch.tensor([[1.0], [-1.0], [0.5]])
    return grpo.Batch(logp.requires_grad_(), old, advantage, mask, 5, mask.sum(), ref=ref)


def test_it_gives_what_the_same_objective_of_ours_gives(mine):
    loss, found = mine(DAPO), []
    for function in (loss, lambda *given: grpo.loss(*given, "token")):
        given = batch()
        terms = function(given, ARGS)
        (gradient,) = torch.autograd.grad(terms.loss, given.logp)
        found.append((terms.loss, gradient, terms.ratio, terms.kl))
    for ours, theirs in zip(*found, strict=True):
        assert torch.equal(ours, theirs)
    own.try_out(loss, ARGS)


def test_terms_of_its_own_are_kept(mine):
    source = (
        DAPO
        + """
from encore.objectives.grpo import Terms
plain = loss
def loss(batch, args):
    found = plain(batch, args)
    return Terms(found, found.detach(), batch.mask * 2.0, batch.mask > 0, None)
"""
    )
    terms = mine(source)(batch(), ARGS)
    assert terms.ratio.max() == 2
    assert terms.cut.sum() == batch().mask.sum()


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return 1.0", "expected a tensor of one number, or Terms, got float"),
        ("return -batch.logp.mean(dim=1)", r"expected a loss of one number, got a tensor of the shape \[4\]"),
        ("return (batch.logp * float('nan')).sum()", "expected a finite loss, got nan"),
        ("return batch.logp.detach().sum()", "no gradient reaches batch.logp"),
        (
            "return -(batch.logp * batch.advantage).sum()",
            "token 1 of completion 0 has a gradient",
        ),
        ("return batch.lopg.sum()", "AttributeError: .* has no attribute 'lopg'.*mine.py, line 3"),
        (
            "return grpo.Terms(loss, loss, loss, loss, None)",
            r"expected a ratio of the shape \[4, 6\], got \[\]",
        ),
    ],
)
def test_a_contract_that_is_broken_is_told_before_training(mine, body: str, says: str):
    before = "loss = (batch.logp * batch.mask).sum()"
    source = f"from encore.objectives import grpo\ndef loss(batch, args):\n    {body}\n"
    if "Terms" in body:
        source = source.replace("    return", f"    {before}\n    return")
    with pytest.raises(UserError, match=f"^mine:loss: {says}"):
        own.try_out(mine(source), ARGS)


def test_one_that_hangs_is_stopped(mine, monkeypatch):
    monkeypatch.setattr(own.own_code.bounded, "__defaults__", (0.2,))
    loss = mine("import time\ndef loss(batch, args):\n    time.sleep(9)\n")
    with pytest.raises(UserError, match=r"mine:loss: not done after 0\.2 seconds of one call"):
        loss(batch(), ARGS)
