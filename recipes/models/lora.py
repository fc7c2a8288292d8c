r"""Low-rank adapters (LoRA, arXiv 2106.09685), by peft: only B and A of W + alpha/rank B A are trained.

A stage's product is the model with the adapters added to its weights, so nothing after the stage knows of
them. Its provenance counts operations as if all weights were trained.
"""

from collections.abc import Mapping
from typing import Any

import torch
from peft import (
    LoraConfig,
    PeftModel,
    get_peft_model,
    get_peft_model_state_dict,
    set_peft_model_state_dict,
)
from peft.tuners.lora import Linear as AdaptedLinear
from torch import nn

from recipes.errors import known
from recipes.models.quantized import is_quantized
from recipes.models.sharded import Weights

ALL = "all-linear"  # peft's name for every linear layer but the head


def adapters(
    key: Mapping[str, Any] | None, model: Any, seed: int, head: str | None = None
) -> LoraConfig | None:
    """What TRL's trainers call `peft_config`, for a stage's key `lora`; None without it.

    `head`: the name of a new layer, which is trained whole. peft draws A from torch's generator as the
    trainer is made, before that sets a seed: it is set here, so that all processes draw the same. Raises
    UserError for a target that `model` has not.
    """
    if key is None:
        return None
    if head is None:
        return _configuration(key, model, seed, task_type="CAUSAL_LM")
    # with a task, peft would put a forward of its own, for attention masks and labels, before the model's
    whole = {"modules_to_save": [head], "exclude_modules": [head]}
    return _configuration(key, model, seed, task_type=None, **whole)


def adapted(backbone: Any, key: Mapping[str, Any], seed: int) -> Any:
    """`backbone`, a model without a head, with adapters as `adapters` has them; only they can be trained."""
    return get_peft_model(backbone, _configuration(key, backbone, seed, task_type=None))


def merged(model: Any, dtype: str | None = None) -> Any:
    """`model` with its adapters added to its weights; a model without adapters as it is.

    Weights of 4 bits are dequantized first, in `dtype`, a name of torch's, by default that of the other
    weights: rounded to 4 bits again, they would lose most of what the adapters have learnt.
    """
    if not isinstance(model, PeftModel):
        return model
    if not is_quantized(model):
        return model.merge_and_unload()
    config, learnt = model.peft_config["default"], get_peft_model_state_dict(model)
    base = model.unload()
    kind = getattr(torch, dtype) if dtype else base.dtype
    plain = get_peft_model(base.dequantize(kind).to(kind), config)
    set_peft_model_state_dict(plain, learnt)
    return plain.merge_and_unload()


def _configuration(key: Mapping[str, Any], model: Any, seed: int, **options: Any) -> LoraConfig:
    linear = {name.rpartition(".")[2] for name, m in model.named_modules() if isinstance(m, nn.Linear)}
    known("lora.targets", key.get("targets", []), sorted(linear), "linear layer")
    torch.manual_seed(seed)
    return LoraConfig(
        r=key["rank"],
        lora_alpha=key["alpha"],
        target_modules=key.get("targets", ALL),
        **options,
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
