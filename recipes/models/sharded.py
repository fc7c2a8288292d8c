"""Models whose weights are spread over the processes of a stage by FSDP2 (torch's `fully_shard`).

A forward pass gathers a layer's weights, uses them and lets them go. So every process has to call a sharded
model, and these functions, equally often: one that does not leaves the others waiting.
"""

from typing import Any

import torch
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import FSDPModule
from torch.distributed.tensor import DTensor

Weights = dict[str, Any]  # name -> tensor


def whole_weights(model: Any) -> Weights | None:
    """The gathered weights of a sharded model, on the CPU of the first process and {} on the others.

    None where `model` is not sharded. All processes must call it.
    """
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    return get_model_state_dict(model, options=options) if is_sharded(model) else None


def is_sharded(model: Any) -> bool:
    """Whether a model's weights are spread over processes."""
    return isinstance(model, FSDPModule)


def own_weights(model: Any) -> Weights:
    """The weights that this process holds: of a sharded model its part of each, otherwise all."""
    return {name: _own(weight) for name, weight in model.state_dict().items()}


def _own(weight: Any) -> Any:
    return weight.to_local() if isinstance(weight, DTensor) else weight


def trained_weights(model: Any) -> Weights:
    """The weights of a model that training changes, and of a sharded one this process's part of them."""
    return {name: _own(weight.detach()) for name, weight in model.named_parameters() if weight.requires_grad}


def load_trained_weights(model: Any, weights: Weights) -> None:
    """Set what `trained_weights` returned, with as many processes as then."""
    own = trained_weights(model)
    for name, weight in weights.items():
        own[name].copy_(weight)


def load_own_weights(model: Any, weights: Weights) -> None:
    """Set what `own_weights` returned, with as many processes as then."""
    if not is_sharded(model):
        model.load_state_dict(weights)
        return
    with torch.no_grad():
        for name, weight in own_weights(model).items():
            weight.copy_(weights[name])
