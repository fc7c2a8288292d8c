"""Models whose weights are spread over the processes of a stage by FSDP2 (torch's `fully_shard`).

A forward pass gathers a layer's weights, uses them and lets them go. So every process has to call a sharded
model, and these functions, equally often: one that does not leaves the others waiting.
"""

from typing import Any

from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import FSDPModule

Weights = dict[str, Any]  # name -> tensor


def whole_weights(model: Any) -> Weights | None:
    """The gathered weights of a sharded model, on the CPU of the first process and {} on the others.

    None where `model` is not sharded. All processes must call it.
    """
    if not isinstance(model, FSDPModule):
        return None
    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    return get_model_state_dict(model, options=options)
