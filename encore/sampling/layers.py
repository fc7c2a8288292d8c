"""The weights of the layers that our decoder knows, with the adapters that are trained above them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

Mlp = Callable[[torch.Tensor], torch.Tensor]  # from (…, width) to (…, width)


@dataclass(frozen=True)
class Layer:
    """The weights of a layer; matrices with the same input are joined."""

    norm: torch.Tensor  # (width,)
    qkv: torch.Tensor  # (heads * head_dim, width): queries, keys and values, one after another
    bias: torch.Tensor | None  # (heads * head_dim,); only Qwen2 has it
    qk_norm: torch.Tensor | None  # (heads, head_dim) for queries and keys; only Qwen3 has it
    out: torch.Tensor  # (width, heads * head_dim)
    mlp_norm: torch.Tensor  # (width,)
    mlp: Mlp


def weights(layer: Any, heads: int, kv_heads: int) -> Layer:
    """Return the weights of a layer of a transformers model, which has these numbers of heads."""
    attention = layer.self_attn
    read = (attention.q_proj, attention.k_proj, attention.v_proj)
    norms = []
    if hasattr(attention, "q_norm"):
        norms = [attention.q_norm.weight] * heads + [attention.k_norm.weight] * kv_heads
    return Layer(
        norm=layer.input_layernorm.weight,
        qkv=torch.cat([_weight(linear) for linear in read]),
        bias=None if read[0].bias is None else torch.cat([linear.bias for linear in read]),
        qk_norm=torch.stack(norms) if norms else None,
        out=_weight(attention.o_proj),
        mlp_norm=layer.post_attention_layernorm.weight,
        mlp=_dense(layer.mlp) if hasattr(layer.mlp, "gate_proj") else _sparse(layer.mlp),
    )


def _weight(linear: Any) -> torch.Tensor:
    """Return the weight of a linear layer, (outputs, inputs), with its LoRA adapters added."""
    if not hasattr(linear, "base_layer"):
        return linear.weight
    return linear.base_layer.weight + sum(map(linear.get_delta_weight, linear.active_adapters))


def _dense(mlp: Any) -> Mlp:
    gate_up = torch.cat([_weight(mlp.gate_proj), _weight(mlp.up_proj)])
    down = _weight(mlp.down_proj)

    def forward(values: torch.Tensor) -> torch.Tensor:
        gate, up = functional.linear(values, gate_up).chunk(2, dim=-1)
        return functional.linear(functional.silu(gate) * up, down)

    return forward


def _sparse(mlp: Any) -> Mlp:
    """Return a mixture of experts. All experts read each token, faster for small ones than sorting tokens."""
    router, gate_up, down = mlp.gate.weight, mlp.experts.gate_up_proj, mlp.experts.down_proj
    visited, whole = mlp.gate.top_k, mlp.gate.norm_topk_prob

    def forward(hidden: torch.Tensor) -> torch.Tensor:
        values = hidden.flatten(0, -2)
        shares, chosen = functional.linear(values, router).float().softmax(dim=-1).topk(visited, dim=-1)
        if whole:
            shares = shares / shares.sum(dim=-1, keepdim=True)
        gate, up = (values @ gate_up.mT).chunk(2, dim=-1)  # (experts, rows, expert_size)
        outputs = (functional.silu(gate) * up) @ down.mT  # (experts, rows, width)
        of_all = values.new_zeros(len(values), len(router)).scatter(1, chosen, shares.to(values.dtype))
        return torch.einsum("re,erw->rw", of_all, outputs).view_as(hidden)

    return forward
