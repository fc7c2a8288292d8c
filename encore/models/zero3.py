"""Models whose weights DeepSpeed's ZeRO, stage 3, spreads over the processes of a stage (arXiv 1910.02054).

accelerate and TRL make the engines; here is what they leave out. What differs from FSDP2: computed in bf16,
the weights are bf16 themselves, and float32 in the optimizer alone, from where they are saved; checkpoints
are DeepSpeed's own pickles, which no other stage reads; a norm of gradients that is no number is told as inf.
"""

from pathlib import Path
from typing import Any

Weights = dict[str, Any]  # name -> tensor


def is_partitioned(model: Any) -> bool:
    return any(hasattr(weight, "ds_id") for weight in model.parameters())


def load_whole() -> None:
    """Have models loaded from here on be whole, as under FSDP2: a trainer spreads what it is given.

    transformers would spread them as it loads, and what reads or draws weights before they are trained
    would find none.
    """
    # imported here: transformers' integrations are slow to import, and only this needs them
    from transformers.integrations.deepspeed import unset_hf_deepspeed_config

    unset_hf_deepspeed_config()


def whole_weights(model: Any) -> Weights:
    """The gathered weights, on the CPU of the first process and {} on the others. All must call it."""
    import deepspeed  # an extra: only stages that ask for it have it
    from deepspeed.utils import safe_get_full_fp32_param  # as above

    weights = {}
    for name, weight in model.named_parameters():
        if weight.requires_grad and hasattr(weight, "_z3_optimizer"):
            whole = safe_get_full_fp32_param(weight).detach()
        else:
            with deepspeed.zero.GatheredParameters([weight]):
                whole = weight.detach().clone()
        if deepspeed.comm.get_rank() == 0:
            weights[name] = whole.cpu()
    return weights


def own_weights(model: Any) -> Weights:
    """The part of each weight that this process holds."""
    return {name: weight.ds_tensor.detach().clone() for name, weight in model.named_parameters()}


def load_own_weights(model: Any, weights: Weights) -> None:
    """Set what `own_weights` returned, with as many processes as then."""
    for name, weight in model.named_parameters():
        weight.ds_tensor.data.copy_(weights[name])


def forget_order(engine: Any) -> None:
    """Have DeepSpeed gather each weight as it is needed, not in the order of the step before.

    Between steps that are alike GRPO scores and samples, and DeepSpeed stops where an order is not kept.
    """
    order = engine.optimizer.parameter_offload.param_coordinator
    if not order.is_invalid_trace():
        order._invalidate_trace()  # as TRL does after it has sampled


def load_checkpoint(model: Any, checkpoint: Path, device: Any) -> None:
    """Load the weights of a checkpoint into a model that is whole."""
    # an extra: only stages that ask for it have it
    from deepspeed.utils.zero_to_fp32 import load_state_dict_from_zero_checkpoint

    load_state_dict_from_zero_checkpoint(model, str(checkpoint)).to(device)
