"""Models whose weights are spread over the processes of a stage by FSDP2 (torch's `fully_shard`).

A forward pass gathers a layer's weights, uses them and frees them. So all processes have to call a sharded
model, and these functions, equally often: a process that does not call leaves the others waiting.
"""

from typing import Any

import torch
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor

Weights = dict[str, Any]  # name -> tensor


def spread(model: Any, precision: MixedPrecisionPolicy | None = None) -> Any:
    """Spread `model` over the GPUs of all processes, each layer by itself and then the rest, and return it.

    It serves models beside the policy; accelerate spreads the policy itself. `precision` is the precision in
    which the model computes; the default is the precision of its weights.
    """
    # torch would keep the rest gathered until a backward pass, which a reference never has
    options: Any = {"mp_policy": precision or MixedPrecisionPolicy(), "reshard_after_forward": True}
    for module in model.modules():
        if type(module).__name__ in (model._no_split_modules or ()):
            fully_shard(module, **options)
    return fully_shard(model, **options)


def whole(value: Any) -> Any:
    """Return `value`, gathered from all processes if it is spread. All processes must call `whole`."""
    return value.full_tensor() if isinstance(value, DTensor) else value


def whole_weights(model: Any) -> Weights | None:
    """Return all weights of a sharded model, on the CPU of the first process; the other processes get {}.

    Returns None if `model` is not sharded. All processes must call this.
    """
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    return get_model_state_dict(model, options=options) if is_sharded(model) else None


def is_sharded(model: Any) -> bool:
    """Return whether a model's weights are spread over processes."""
    return isinstance(model, FSDPModule)


def own_part(value: Any) -> Any:
    """Return the part of a sharded tensor that this process holds; any other value unchanged."""
    return value.to_local() if isinstance(value, DTensor) else value


def own_weights(model: Any) -> Weights:
    """Return the weights that this process holds: a part of each weight if the model is sharded."""
    return {name: own_part(weight) for name, weight in model.state_dict().items()}


def load_own_weights(model: Any, weights: Weights) -> None:
    """Set the weights that `own_weights` returned; the number of processes must be unchanged."""
    if not is_sharded(model):
        model.load_state_dict(weights)
        return
    with torch.no_grad():
        for name, weight in own_weights(model).items():
            weight.copy_(weights[name])


def own_state(optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Return the state of an optimizer; for sharded weights, the part that this process holds."""
    state = optimizer.state_dict()
    kept = {
        number: {name: own_part(value) for name, value in of_weight.items()}
        for number, of_weight in state["state"].items()
    }
    return {**state, "state": kept}


def load_own_state(optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Restore the state that `own_state` returned; the number of processes must be unchanged."""
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]

    def shard(value: Any, weight: Any) -> Any:
        if not isinstance(weight, DTensor) or not isinstance(value, torch.Tensor) or not value.ndim:
            return value
        device = weight.to_local().device
        layout: dict[str, Any] = {"shape": weight.shape, "stride": weight.stride(), "run_check": False}
        return DTensor.from_local(value.to(device), weight.device_mesh, weight.placements, **layout)

    held = {
        number: {name: shard(value, weights[number]) for name, value in of_weight.items()}
        for number, of_weight in state["state"].items()
    }
    optimizer.load_state_dict({**state, "state": held})
