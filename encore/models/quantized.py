"""Weights of 4 bits below adapters (QLoRA, arXiv 2305.14314), by transformers and bitsandbytes.

All linear layers except the head are held in NF4: blocks of 64 weights with a scale, which is quantized as
well. They are never trained. bitsandbytes also runs on a CPU, where it only costs time.
"""

from collections.abc import Mapping
from typing import Any

import torch
from transformers import BitsAndBytesConfig

from encore.recipe.kinds.stage import Lora


def loading(key: Lora | None, args: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return `options` of `from_pretrained`, and options for 4 bits if the key `lora` says `quantized`.

    `args` are transformers' TrainingArguments. A layer computes in bf16 if `args` or `options` say so.
    """
    if not key or not key.quantized:
        return dict(options)
    half = args.bf16 or options.get("dtype") == "bfloat16"
    config = BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type=key.quantized,
        bnb_4bit_use_double_quant=True,
        bnb_4bit_compute_dtype=torch.bfloat16 if half else torch.float32,
    )
    return {**options, "quantization_config": config, "device_map": {"": str(args.device)}}


def as_stored(model: Any) -> Any:
    """Return `model`, whose layers of 4 bits then keep their weights in the order of loading.

    On a CPU with AVX512-BF16 bitsandbytes would reorder them at the first call without gradients. From then
    on it would compute in bf16, and the dequantized weights would be wrong.
    """
    for layer in model.modules():
        if hasattr(layer, "support_avx512bf16_for_cpu"):
            layer.support_avx512bf16_for_cpu = False
    return model


def is_quantized(model: Any) -> bool:
    return bool(getattr(model, "is_loaded_in_4bit", False))


def learn_in_float32(model: Any) -> None:
    """Turn the trained weights of a model into float32 if its other weights have 4 bits.

    TRL makes the trained weights bfloat16, in which most of a small update is lost. peft makes them float32
    when it loads a checkpoint, so without this function a resumed run would differ.
    """
    for weight in model.parameters() if is_quantized(model) else ():
        if weight.requires_grad:
            weight.data = weight.data.float()
