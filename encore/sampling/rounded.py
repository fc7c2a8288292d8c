"""A copy of a policy in a lower precision, from which an engine would sample.

| precision         | what is rounded                                                  | it computes in   |
|-------------------|------------------------------------------------------------------|------------------|
| bfloat16, float16 | all weights, and every result of a layer                         | that precision   |
| int8              | weights of linear layers, to 255 steps for each output           | the policy's own |
| float8            | weights of linear layers, to e4m3 with one scale for each matrix | the policy's own |

The last two are the weight-only schemes of vLLM, which leave embeddings, norms and the head as they are.
"""

import copy
from typing import Any

import torch
from torch import Tensor

from encore.errors import UserError

HALVES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
STEPS = 127  # largest whole number of int8 that is used, so that the range is symmetric
LARGEST = 448.0  # largest number of e4m3


def rounded(model: Any, precision: str) -> Any:
    """Return a copy of a transformers model in `precision`. Raises UserError for a mixture of experts."""
    made = copy.deepcopy(model)
    if precision in HALVES:
        # not by made.to(…), which would round the frequencies of rotary positions too; engines keep them
        for weight in made.parameters():
            weight.data = weight.data.to(HALVES[precision])
        return made
    if any(hasattr(module, "gate_up_proj") for module in made.modules()):
        raise UserError(f"sampler_precision: {precision} is of linear layers, not of experts; take bfloat16")
    narrow = of_int8 if precision == "int8" else of_float8
    head = made.get_output_embeddings()
    with torch.no_grad():
        for layer in made.modules():
            if isinstance(layer, torch.nn.Linear) and layer is not head:
                layer.weight.copy_(narrow(layer.weight))
    return made


def of_int8(weight: Tensor) -> Tensor:
    """Return a weight (outputs, inputs) rounded to 255 steps for each output."""
    scale = weight.abs().amax(dim=-1, keepdim=True) / STEPS
    steps = (weight / scale.clamp(min=torch.finfo(weight.dtype).tiny)).round().clamp(-STEPS, STEPS)
    return steps * scale


def of_float8(weight: Tensor) -> Tensor:
    """Return a weight rounded to e4m3, after a scale that makes its largest number the largest of e4m3."""
    scale = (weight.abs().amax() / LARGEST).clamp(min=torch.finfo(weight.dtype).tiny)
    return (weight / scale).to(torch.float8_e4m3fn).to(weight.dtype) * scale
