r"""Low-rank adapters (LoRA, arXiv 2106.09685), by peft: only B and A of W + alpha/rank B A are trained.

A stage's product is the model with the adapters added to its weights, so later stages see an ordinary model.
The stage's provenance counts operations as if all weights were trained.
"""

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
from peft.utils.other import transpose
from torch import nn

from encore.errors import known
from encore.models.quantized import is_quantized
from encore.models.sharded import Weights, is_sharded, whole_weights
from encore.recipe.kinds.stage import Lora

ALL = "all-linear"  # peft's name for every linear layer but the head
ABOVE = "base_model.model."  # the prefix that peft adds to the name of a weight


def adapters(key: Lora | None, model: Any, seed: int, head: str | None = None) -> LoraConfig | None:
    """Return the `peft_config` for TRL's trainers by a stage's key `lora`; None without the key.

    `head` is the name of a new layer, which is trained whole. peft draws A from torch's generator when the
    trainer is made, before the trainer sets a seed. So the seed is set here, and all processes draw the same
    A. Raises UserError for a target that `model` lacks.
    """
    if key is None:
        return None
    if head is None:
        return _configuration(key, model, seed, task_type="CAUSAL_LM")
    # with a task, peft would put its own forward, for attention masks and labels, before the model's
    whole = {"modules_to_save": [head], "exclude_modules": [head]}
    return _configuration(key, model, seed, task_type=None, **whole)


def adapted(backbone: Any, key: Lora, seed: int) -> Any:
    """Return `backbone`, a model without a head, with adapters by a stage's key `lora`.

    Only the adapters can be trained.
    """
    return get_peft_model(backbone, _configuration(key, backbone, seed, task_type=None))


def merged(model: Any, dtype: str | None = None) -> Any:
    """Return `model` with its adapters added to its weights; a model without adapters is returned unchanged.

    A sharded model keeps its adapters, and `product` adds them when it is saved. Weights of 4 bits are
    dequantized first, in `dtype`, torch's name for a type; the default is the type of the other weights.
    Rounded to 4 bits again, they would lose most of what the adapters have learnt.
    """
    if not isinstance(model, PeftModel) or is_sharded(model):
        return model
    if not is_quantized(model):
        return model.merge_and_unload()
    config, learnt = model.peft_config["default"], get_peft_model_state_dict(model)
    base = model.unload()
    kind = getattr(torch, dtype) if dtype else base.dtype
    plain = get_peft_model(base.dequantize(kind).to(kind), config)
    set_peft_model_state_dict(plain, learnt)
    return plain.merge_and_unload()


def below(model: Any) -> Any:
    """Return the model below the adapters, or `model` itself if it has no adapters."""
    return model.get_base_model() if isinstance(model, PeftModel) else model


def show_ends(model: Any) -> None:
    """Let accelerate find the final norm of a model with adapters, as it does without adapters.

    accelerate shards norm, embedding and head as one unit, and looks for the norm below `base_model_prefix`.
    """
    if isinstance(model, PeftModel):
        vars(model).update(base_model_prefix="backbone", backbone=below(model).base_model)


def parameters(model: Any) -> int:
    """Return the number of weights of a model; the adapters of a sharded model are not counted."""
    if not is_sharded(model):
        return model.num_parameters()
    return sum(weight.numel() for name, weight in model.named_parameters() if _plain(name))


def _configuration(key: Lora, model: Any, seed: int, **options: Any) -> LoraConfig:
    head = model.get_output_embeddings()  # losses and samplers read its plain weight, without an adapter
    layers = [name for name, m in model.named_modules() if isinstance(m, nn.Linear) and m is not head]
    linear = {name.rpartition(".")[2] for name in layers}
    known("lora.targets", key.targets or [], sorted(linear), "linear layer")
    torch.manual_seed(seed)
    return LoraConfig(
        r=key.rank,
        lora_alpha=key.alpha,  # type: ignore[arg-type]  # any number will do
        target_modules=list(key.targets) if key.targets else ALL,
        **options,
    )


def _merged_weights(model: Any) -> tuple[Any, Weights] | None:
    """Return the model below the adapters and the weights of `merged(model)`; None without adapters.

    If the model is sharded, all processes must call this, and only the first process gets weights.
    """
    if not isinstance(model, PeftModel):
        return None
    held, base = whole_weights(model), below(model)
    held = model.state_dict() if held is None else held
    weights = {plain: weight for name, weight in held.items() if (plain := _plain(name))}
    with torch.no_grad():
        for name, layer in base.named_modules() if held else ():
            if isinstance(layer, AdaptedLinear):
                (adapter,) = layer.active_adapters
                a, b = (held[f"{ABOVE}{name}.lora_{side}.{adapter}.weight"] for side in "AB")
                # the computation of peft's get_delta_weight, which reads only what this process holds
                change = transpose(b @ a, layer.fan_in_fan_out) * layer.scaling[adapter]
                weight = weights[f"{name}.weight"]
                weights[f"{name}.weight"] = (weight + change).to(weight.dtype)
    return base, weights


def product(model: Any) -> tuple[Any, Weights | None]:
    """Return the model to write and its weights, after adapters were added or shards gathered.

    The weights are None if they are the model's own. All processes must call this.
    """
    return _merged_weights(model) or (model, whole_weights(model))


def _plain(name: str) -> str | None:
    """Return the name of a weight without adapters; None if the weight belongs to an adapter."""
    if ".lora_" in name or ".original_module." in name:
        return None
    plain = name.removeprefix(ABOVE).replace(".base_layer.", ".")
    return plain.replace(".modules_to_save.default.", ".")
