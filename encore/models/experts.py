"""Mixtures of experts: how much of one a token meets."""

from typing import Any


def routed(config: Any) -> tuple[int, int]:
    """Experts of a layer, and how many a token visits; (1, 1) of a dense model."""
    count = getattr(config, "n_routed_experts", None) or getattr(config, "num_experts", None) or 1
    return count, getattr(config, "num_experts_per_tok", None) or 1


def idle(model: Any) -> float:
    """How many of its weights a token is not multiplied with: those of the experts it passes by."""
    experts, visited = routed(model.config.get_text_config())
    if experts == 1:
        return 0
    inside = sum(weight.numel() for name, weight in model.named_parameters() if ".experts." in name)
    return inside * (1 - visited / experts)
