"""A user's objective: a function that a recipe names by `objective: my_module:loss`.

    def loss(batch: Batch, args) -> Tensor | Terms

`args` are TRL's (GRPOConfig). The function returns the loss of a micro-batch; the losses of all micro-batches
of an optimizer step add up to the step's loss. It returns a tensor of one number, or `Terms`, which also hold
what is to be measured.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from encore import own_code
from encore.errors import UserError
from encore.objectives.grpo import Batch, Terms, importance_ratio, k3
from encore.recipe.grpo_args import GrpoArgs

ROWS, TIME = 4, 6  # shape of the micro-batch on which a function is tried out


def objective(name: str) -> Callable[[Batch, GrpoArgs], Terms]:
    """Return the user's function `name`, with its time bounded and its contract checked at each call.

    The contract: the loss is one finite number, its gradient reaches `batch.logp`, and no token outside of
    `batch.mask` has a gradient. The returned function raises UserError if the contract is broken, or if the
    user's function fails or takes more than a minute.
    """
    function = own_code.bounded(name, own_code.load(name))

    def loss(batch: Batch, args: GrpoArgs) -> Terms:
        returned = function(batch, args)
        terms = returned if isinstance(returned, Terms) else _measured(name, returned, batch)
        _check_terms(name, terms, batch)
        return terms

    return loss


def try_out(loss: Callable[[Batch, GrpoArgs], Terms], args: GrpoArgs) -> None:
    """Call an objective on a random micro-batch, with reference and entropy if `args` use them.

    Raises UserError as `objective` does.
    """
    generator = torch.Generator().manual_seed(0)

    def nats() -> Tensor:
        return -torch.rand(ROWS, TIME, generator=generator) * 4

    lengths = torch.arange(1, ROWS + 1)  # lengths of the completions; the longest is shorter than TIME
    mask = (torch.arange(TIME) < lengths[:, None]).long()
    options: Any = args
    batch = Batch(
        logp=nats().requires_grad_(),
        old=nats(),
        advantage=torch.tensor([1.0, -1.0, 0.5, -0.5])[:, None],
        mask=mask,
        cap=TIME,
        step_tokens=mask.sum(),
        ref=nats() if args.beta else None,
        entropy=-nats() if options.entropy_coef or options.use_adaptive_entropy else None,
    )
    loss(batch, args)


def _measured(name: str, loss: Any, batch: Batch) -> Terms:
    """Return `Terms` for a loss that a user's function returned alone, with each token's ratio and KL."""
    if not isinstance(loss, Tensor):
        raise UserError(f"{name}: expected a tensor of one number, or Terms, got {type(loss).__name__}")
    with torch.no_grad():
        ratio = importance_ratio(batch, "token")
        divergence = None if batch.ref is None else k3(batch.logp, batch.ref)
    return Terms(loss, loss.detach(), ratio, torch.zeros_like(ratio, dtype=torch.bool), divergence)


def _check_terms(name: str, terms: Terms, batch: Batch) -> None:
    """Raise UserError unless `terms` keep the contract of `objective`."""
    loss = terms.loss
    if loss.shape != ():
        raise UserError(f"{name}: expected a loss of one number, got a tensor of the shape {[*loss.shape]}")
    if not loss.isfinite():
        raise UserError(f"{name}: expected a finite loss, got {loss.item()}")
    for field, value in (("ratio", terms.ratio), ("cut", terms.cut)):
        if value.shape not in (batch.logp.shape, (len(batch.logp), 1)):
            shape = [*batch.logp.shape]
            raise UserError(f"{name}: expected a {field} of the shape {shape}, got {[*value.shape]}")
    gradient = None
    if loss.requires_grad:
        (gradient,) = torch.autograd.grad(loss, batch.logp, retain_graph=True, allow_unused=True)
    if gradient is None:
        raise UserError(f"{name}: no gradient reaches batch.logp, so the policy could learn nothing")
    outside = (gradient != 0) & (batch.mask == 0)
    if outside.any():
        row, token = outside.nonzero()[0].tolist()
        raise UserError(
            f"{name}: token {token} of completion {row} has a gradient, and is not in the loss; "
            "multiply by batch.mask before you add up"
        )
