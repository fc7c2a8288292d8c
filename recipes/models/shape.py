"""The shape of a model built from scratch: a recipe's keys as Qwen3Config's.

Imports no torch, because recipes are checked without it.
"""

from typing import Any

from recipes.errors import UserError, nearest

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
HEAD_DIMS = (32, 64, 128)  # what vLLM's attention kernels serve


def shape(spec: dict[str, Any]) -> dict[str, Any]:
    """Qwen3Config's options for a recipe's `model`.

    `spec`: hidden_size, layers and head_dim, optionally heads, kv_heads, intermediate_size (default 4 x
    hidden_size) and the others of `SAME`. Raises UserError for an unknown key or a shape that does not fit.
    """
    for key in spec:
        if key not in SHAPE and key not in SAME:
            raise UserError(f"model.{key}: unknown key{nearest(key, [*SHAPE, *SAME])}")
    if missing := [key for key in ("hidden_size", "layers") if key not in spec]:
        raise UserError(f"model.{missing[0]}: missing")
    hidden, head_dim = spec["hidden_size"], spec.get("head_dim", 32)
    if head_dim not in HEAD_DIMS:
        raise UserError(f"model.head_dim: expected one of {HEAD_DIMS}, got {head_dim}")
    heads = spec.get("heads", max(1, hidden // head_dim))
    kv_heads = spec.get("kv_heads", heads)
    if heads % kv_heads:
        raise UserError(f"model.kv_heads: {kv_heads} does not divide heads = {heads}")
    options = {"head_dim": head_dim, "intermediate_size": 4 * hidden, "max_position_embeddings": 512}
    options |= {"tie_word_embeddings": False} | {SHAPE.get(key, key): value for key, value in spec.items()}
    return options | {"num_attention_heads": heads, "num_key_value_heads": kv_heads}
