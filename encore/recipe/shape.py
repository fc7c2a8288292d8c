"""The shape of a model built from scratch: a recipe's keys as Qwen3Config's, or Qwen3MoeConfig's.

Imports no torch, because recipes are checked without it.
"""

from collections.abc import Mapping
from typing import Any

from encore.errors import UserError, nearest

# the recipe's key -> Qwen3Config's, where they differ
SHAPE = {"layers": "num_hidden_layers", "heads": "num_attention_heads", "kv_heads": "num_key_value_heads"}
SAME = (
    "hidden_size",
    "head_dim",
    "intermediate_size",
    "max_position_embeddings",
    "tie_word_embeddings",
    "initializer_range",
    "attention_dropout",
)
# of a mixture of experts: the keys that go together, and Qwen3MoeConfig's
EXPERTS = {"experts": "num_experts", "visited": "num_experts_per_tok", "expert_size": "moe_intermediate_size"}
HEAD_DIMS = (32, 64, 128)  # what vLLM's attention kernels serve


def shape(spec: dict[str, Any]) -> dict[str, Any]:
    """Qwen3Config's options for a recipe's `model`; of one with `experts`, Qwen3MoeConfig's.

    `spec`: hidden_size, layers and head_dim, optionally heads, kv_heads, intermediate_size (default 4 x
    hidden_size) and the others of `SAME`. With `experts`, their number, also `visited`, how many of them a
    token goes through, and `expert_size`, the width of each; their weights for a token come to 1, as in
    Qwen3's (arXiv 2505.09388 §2). Raises UserError for an unknown key or a shape that does not fit.
    """
    keys = {**SHAPE, **EXPERTS}
    for key in spec:
        if key not in keys and key not in SAME:
            raise UserError(f"model.{key}: unknown key{nearest(key, [*keys, *SAME])}")
    needed = ("hidden_size", "layers", *(EXPERTS if is_sparse(spec) else ()))
    if missing := [key for key in needed if key not in spec]:
        raise UserError(f"model.{missing[0]}: missing")
    if is_sparse(spec) and spec["visited"] > spec["experts"]:
        raise UserError(f"model.visited: expected at most experts = {spec['experts']}, got {spec['visited']}")
    hidden, head_dim = spec["hidden_size"], spec.get("head_dim", 32)
    if head_dim not in HEAD_DIMS:
        raise UserError(f"model.head_dim: expected one of {HEAD_DIMS}, got {head_dim}")
    heads = spec.get("heads", max(1, hidden // head_dim))
    kv_heads = spec.get("kv_heads", heads)
    if heads % kv_heads:
        raise UserError(f"model.kv_heads: {kv_heads} does not divide heads = {heads}")
    options = {"head_dim": head_dim, "intermediate_size": 4 * hidden, "max_position_embeddings": 512}
    options |= {"tie_word_embeddings": False} | {keys.get(key, key): value for key, value in spec.items()}
    options |= {"norm_topk_prob": True} if is_sparse(spec) else {}
    return options | {"num_attention_heads": heads, "num_key_value_heads": kv_heads}


def is_sparse(spec: Mapping[str, Any]) -> bool:
    """Whether a recipe's `model` is a mixture of experts."""
    return any(key in spec for key in EXPERTS)
