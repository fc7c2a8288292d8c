"""The reference of a KL term: a model of its own, or the policy without its adapters.

On several GPUs it is spread layer by layer, as the policy is. TRL shards a reference as one unit, so that
each forward pass gathers all its weights at once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from trl.trainer.utils import add_fused_lm_head

from encore.learning.resumable import State
from encore.models.sharded import load_own_weights, own_weights, spread


class Reference:
    """The policy that the KL is measured to; `model`: None for the policy without its adapters."""

    def __init__(self, model: Any | None, synced: bool = False):
        """`synced`: whether it follows the policy, so that a checkpoint must keep it."""
        self.model, self.synced = model, synced

    @contextmanager
    def in_force(self, trainer: Any) -> Iterator[Any]:
        """For a while, have a model at hand that is the reference."""
        if self.model is not None:
            yield self.model
            return
        with trainer.accelerator.unwrap_model(trainer.model).disable_adapter():
            yield trainer.model

    def state(self) -> State | None:
        return own_weights(self.model) if self.synced else None

    def restore(self, state: State | None) -> None:
        if state is not None:
            load_own_weights(self.model, state)


def beside(model: Any | None, trainer: Any) -> Reference:
    """Return the reference of a trainer of TRL's with fused log-probabilities; `model` as of `Reference`."""
    args = trainer.args
    if model is not None:
        cast = args.cast_lm_head_to_fp32
        add_fused_lm_head(model, temperature=trainer.temperature, cast_lm_head_to_fp32=cast)
        model = placed(model.requires_grad_(False), trainer, learns=False).eval()
    return Reference(model, args.sync_ref_model)


def placed(model: Any, trainer: Any, learns: bool = True) -> Any:
    """Put a model beside the policy, on this process's device, or spread as the policy will be."""
    if trainer.is_fsdp_enabled:
        return _as_policy(model, trainer.accelerator)
    return trainer.accelerator.prepare_model(model, evaluation_mode=not learns)


@contextmanager
def by_layers(module: Any) -> Iterator[None]:
    """While it lasts, a trainer of TRL's that is made spreads its reference `_as_policy`.

    `module`: where TRL defines that trainer, and from where it takes `prepare_fsdp`.
    """
    plain = module.prepare_fsdp
    module.prepare_fsdp = lambda model, accelerator: _as_policy(model, accelerator).eval()
    try:
        yield
    finally:
        module.prepare_fsdp = plain


def _as_policy(model: Any, accelerator: Any) -> Any:
    """Spread `model` over all processes, in the precision that `accelerator` has the policy compute in."""
    return spread(model, exact_outputs(accelerator))


def exact_outputs(accelerator: Any) -> Any:
    """Have accelerate compute a sharded policy's outputs and sums of gradients exactly; torch's policy of it.

    accelerate would round log-probabilities and rewards to 8 bits as they leave the model. None where nothing
    is sharded, or computed in one precision.
    """
    plugin = getattr(accelerator.state, "fsdp_plugin", None)
    if plugin and plugin.mixed_precision_policy:
        plugin.mixed_precision_policy = replace(
            plugin.mixed_precision_policy, output_dtype=None, reduce_dtype=torch.float32
        )
    return plugin and plugin.mixed_precision_policy
