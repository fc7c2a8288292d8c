"""The reference of a KL term: a separate model, or the policy without its adapters.

On several GPUs the reference is spread layer by layer, as the policy is. TRL would shard it as one unit, so
that each forward pass would gather all its weights at once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import nn
from trl.trainer.callbacks import SyncRefModelCallback
from trl.trainer.utils import add_fused_lm_head

from encore.learning.resumable import State
from encore.models.sharded import load_own_weights, own_weights, spread

# accelerate's name of a mixed precision -> the type in which linear layers then compute
HALVES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Reference:
    """The reference policy of a KL term. `model` is None if it is the policy without its adapters."""

    def __init__(self, model: Any | None, synced: bool = False):
        """Take a model. `synced`: the reference follows the policy, so a checkpoint must keep it."""
        self.model, self.synced = model, synced

    @contextmanager
    def in_force(self, trainer: Any) -> Iterator[Any]:
        """Provide the reference's model in the `with` block; an adapted policy has its adapters off there."""
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


def beside(model: Any | None, trainer: Any, fused_head: bool = True) -> Reference:
    """Return the reference for a TRL trainer; `model` is None if it is the policy without its adapters.

    The model is frozen, and follows the policy if the stage asks for it. It is `rounded` in mixed precision,
    unless it is spread over processes or follows the policy by small steps. `fused_head`: it gets TRL's fused
    LM head, which computes log-probabilities.
    """
    args, half = trainer.args, HALVES.get(trainer.accelerator.mixed_precision)
    if model is None:
        return Reference(None, args.sync_ref_model)
    if half and not trainer.is_fsdp_enabled and not args.sync_ref_model:
        rounded(model, half)
    if fused_head:
        cast = args.cast_lm_head_to_fp32
        add_fused_lm_head(model, temperature=trainer.temperature, cast_lm_head_to_fp32=cast)
    model = placed(model.requires_grad_(False), trainer, learns=False).eval()
    if args.sync_ref_model:
        trainer.add_callback(SyncRefModelCallback(model, trainer.accelerator))
    return Reference(model, args.sync_ref_model)


def rounded(model: Any, dtype: torch.dtype) -> None:
    """Keep the weights of the linear layers of a frozen model, but for the head, in `dtype`.

    In mixed precision autocast rounds these weights so at every call. Kept rounded they take half the memory,
    and no output changes by a bit.
    """
    head = model.get_output_embeddings()
    for layer in model.modules():
        if isinstance(layer, nn.Linear) and layer is not head and layer.weight.dtype == torch.float32:
            layer.to(dtype)


def placed(model: Any, trainer: Any, learns: bool = True) -> Any:
    """Return a model that runs beside the policy: on this process's device, or sharded like the policy."""
    if trainer.is_fsdp_enabled:
        return _as_policy(model, trainer.accelerator)
    return trainer.accelerator.prepare_model(model, evaluation_mode=not learns)


@contextmanager
def by_layers(module: Any) -> Iterator[None]:
    """Make TRL's trainers spread their reference by `_as_policy` if they are made in the `with` block.

    `module` is the module of TRL that defines the trainer and imports `prepare_fsdp`.
    """
    plain = module.prepare_fsdp
    module.prepare_fsdp = lambda model, accelerator: _as_policy(model, accelerator).eval()
    try:
        yield
    finally:
        module.prepare_fsdp = plain


def _as_policy(model: Any, accelerator: Any) -> Any:
    """Spread `model` over all processes; it computes in the precision that `accelerator` gives the policy."""
    return spread(model, exact_outputs(accelerator))


def exact_outputs(accelerator: Any) -> Any:
    """Make accelerate keep the outputs and the gradient sums of a sharded policy exact.

    accelerate would round log-probabilities and rewards to bfloat16 as they leave the model. Returns the
    changed precision policy of torch, or None if nothing is sharded or everything is computed in one
    precision.
    """
    plugin = getattr(accelerator.state, "fsdp_plugin", None)
    if plugin and plugin.mixed_precision_policy:
        plugin.mixed_precision_policy = replace(
            plugin.mixed_precision_policy, output_dtype=None, reduce_dtype=torch.float32
        )
    return plugin and plugin.mixed_precision_policy
