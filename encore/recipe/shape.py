"""The shape of a model built from scratch: a recipe's keys, and their names in Qwen3Config.

The module imports no torch, because recipes are checked without it.
"""

from collections.abc import Iterator
from typing import Any

from encore.recipe.base import Mistake, Model, Positive

# the recipe's key -> the key of Qwen3Config, if they differ
NAMES = {"layers": "num_hidden_layers", "heads": "num_attention_heads", "kv_heads": "num_key_value_heads"}
# keys of a mixture of experts, which must be given together -> the keys of Qwen3MoeConfig
EXPERTS = {"experts": "num_experts", "visited": "num_experts_per_tok", "expert_size": "moe_intermediate_size"}
Options = dict[str, Any]  # options of a configuration of transformers
HEAD_DIMS = (32, 64, 128)  # the sizes that vLLM's attention kernels support


class Shape(Model):
    """The shape of a Qwen3 model. All other settings are transformers' defaults."""

    hidden_size: Positive
    layers: Positive
    heads: Positive | None = None  # number of attention heads; default: as many as fit into hidden_size
    kv_heads: Positive | None = None  # number of heads of keys and values; default: heads
    head_dim: Positive = HEAD_DIMS[0]
    intermediate_size: Positive | None = None  # width of the MLP; default: 4 x hidden_size
    # A mixture of experts replaces each layer's MLP: the number of experts, the number that a token visits,
    # and the width of each. Their weights for a token come to 1, as in Qwen3 (arXiv 2505.09388 §2).
    experts: Positive | None = None
    visited: Positive | None = None
    expert_size: Positive | None = None
    max_position_embeddings: Positive = 512
    tie_word_embeddings: bool = False
    initializer_range: float | None = None
    attention_dropout: float | None = None

    @property
    def is_sparse(self) -> bool:
        """Whether the model is a mixture of experts."""
        return any(getattr(self, key) is not None for key in EXPERTS)

    def mistakes(self) -> Iterator[Mistake]:
        """Yield the first mistake: numbers of heads and experts that do not go together."""
        options = self.options()
        heads, kv_heads = options["num_attention_heads"], options["num_key_value_heads"]
        missing = [key for key in EXPERTS if self.is_sparse and getattr(self, key) is None]
        if missing:
            yield missing[0], "missing"
        elif self.experts and self.visited and self.visited > self.experts:
            yield "visited", f"expected at most experts = {self.experts}, got {self.visited}"
        elif self.head_dim not in HEAD_DIMS:
            yield "head_dim", f"expected one of {HEAD_DIMS}, got {self.head_dim}"
        elif heads % kv_heads:
            yield "kv_heads", f"{kv_heads} does not divide heads = {heads}"

    def options(self) -> Options:
        """Return the options of Qwen3Config, or of Qwen3MoeConfig for a mixture of experts."""
        heads = self.heads or max(1, self.hidden_size // self.head_dim)
        derived = {"heads": heads, "kv_heads": heads, "intermediate_size": 4 * self.hidden_size}
        values = derived | self.model_dump(exclude_none=True)
        names = {**NAMES, **EXPERTS}
        options: Options = {names.get(key) or key: value for key, value in values.items()}
        return options | ({"norm_topk_prob": True} if self.is_sparse else {})
