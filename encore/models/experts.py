"""Mixtures of experts: the share of the weights that a token uses."""

from typing import Any


def routed(config: Any) -> tuple[int, int]:
    """Return the number of experts in a layer, and how many a token visits; (1, 1) for a dense model."""
    count = getattr(config, "n_routed_experts", None) or getattr(config, "num_experts", None) or 1
    return count, getattr(config, "num_experts_per_tok", None) or 1


def idle(model: Any) -> float:
    """Return the number of weights that a token does not use, which lie in experts that it does not visit."""
    experts, visited = routed(model.config.get_text_config())
    if experts == 1:
        return 0
    inside = sum(weight.numel() for name, weight in model.named_parameters() if ".experts." in name)
    return inside * (1 - visited / experts)
