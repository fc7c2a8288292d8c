r"""Low-rank adapters (LoRA, arXiv 2106.09685), by peft: only B and A of W + alpha/rank B A are trained.

A stage's product is the model with the adapters added to its weights, so nothing after the stage knows of
them. Its provenance counts operations as if all weights were trained.
"""

from collections.abc import Mapping
from typing import Any

import torch
from peft import LoraConfig, PeftModel
from peft.tuners.lora import Linear as AdaptedLinear
from torch import nn

from recipes.errors import known
from recipes.models.sharded import Weights

ALL = "all-linear"  # peft's name for every linear layer but the head


def adapters(key: Mapping[str, Any] | None, model: Any, seed: int) -> LoraConfig | None:
    """What TRL's trainers call `peft_config`, for a stage's key `lora`; None without it.

    peft draws A from torch's generator as the trainer is made, before that sets a seed: it is set here, so
    that all processes draw the same. Raises UserError for a target that `model` has not.
    """
    if key is None:
        return None
    linear = {name.rpartition(".")[2] for name, m in model.named_modules() if isinstance(m, nn.Linear)}
    known("lora.targets", key.get("targets", []), sorted(linear), "linear layer")
    torch.manual_seed(seed)
    return LoraConfig(
        r=key["rank"],
        lora_alpha=key["alpha"],
        target_modules=key.get("targets", ALL),
        task_type="CAUSAL_LM",
    )


def merged_weights(model: Any) -> tuple[Any, Weights] | None:
    """The model below the adapters, and the weights that `merged(model)` would have; None without any."""
    if not isinstance(model, PeftModel):
        return None
    base = model.get_base_model()
    held = base.state_dict()
    weights = {name.replace(".base_layer.", "."): w for name, w in held.items() if ".lora_" not in name}
    with torch.no_grad():
        for name, layer in base.named_modules():
            if isinstance(layer, AdaptedLinear):
                (adapter,) = layer.active_adapters
                weight = weights[f"{name}.weight"]
                weights[f"{name}.weight"] = (weight + layer.get_delta_weight(adapter)).to(weight.dtype)
    return base, weights


def merged(model: Any) -> Any:
    """`model` with its adapters added to its weights; a model without adapters as it is."""
    return model.merge_and_unload() if isinstance(model, PeftModel) else model
