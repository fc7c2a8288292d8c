"""Liger's kernels on a CPU: a script that prints, as JSON, how far a fused model is from the plain one.

Triton's interpreter runs a kernel as Python if TRITON_INTERPRET is 1 when Triton is imported. It lacks two
things that a GPU has: numbers of type float as arguments, and the reciprocal square root of libdevice.
"""

import json
import sys
from unittest import mock

import numpy as np
import torch
import triton.language as tl
from liger_kernel.ops import rms_norm
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from triton.runtime import interpreter

from encore.models.liger import fused

SHAPE = {"vocab_size": 50, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "head_dim": 8}
SHAPE |= {"num_attention_heads": 3, "num_key_value_heads": 1, "max_position_embeddings": 64}
plain_argument = interpreter._implicit_cvt


def argument(value: object) -> object:
    if not isinstance(value, float):
        return plain_argument(value)
    return tl.tensor(interpreter.TensorHandle(np.array([value], np.float32), tl.float32), tl.float32)


def learnt(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """The logits of a batch, and the gradient of every weight."""
    ids = torch.randint(0, SHAPE["vocab_size"], (2, 11), generator=torch.Generator().manual_seed(1))
    model.zero_grad()
    outputs = model(input_ids=ids, labels=ids)
    outputs.loss.backward()
    gradients = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    return {"logits": outputs.logits.detach()} | gradients


def compared(kind: str) -> dict[str, object]:
    """How far a fused model is from the plain one, by tensor and as a share of its largest number."""
    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(CONFIG_MAPPING[kind](**SHAPE))
    for weight in model.parameters():
        torch.nn.init.normal_(weight, std=0.3)
    plain = learnt(model)
    with mock.patch("torch.cuda.is_available", return_value=True):
        fused(model)
    rotated = sys.modules[type(model).__module__].apply_rotary_pos_emb.__name__
    forwards = {name.split(".")[-1]: module.forward for name, module in model.named_modules()}
    by_liger = [name for name, forward in forwards.items() if forward.__qualname__.startswith("Liger")]
    differences = {
        name: float((value - plain[name]).abs().max() / plain[name].abs().max())
        for name, value in learnt(model).items()
    }
    return {"differences": differences, "fused": sorted(by_liger), "rotary": rotated}


if __name__ == "__main__":
    interpreter._implicit_cvt = argument
    rms_norm.rsqrt = lambda x: tl.rsqrt(x)
    print(json.dumps({kind: compared(kind) for kind in sys.argv[1:]}))
