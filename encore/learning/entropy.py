"""The entropy bonus of a policy's loss, with a fixed or adaptive coefficient (Skywork-OR1, 2505.22312).

TRL computes the bonus inside its loss, from private attributes. Here the arguments have TRL's names.
"""

from typing import Any

import torch
from torch import Tensor


class EntropyBonus:
    """The coefficient of the bonus, and the entropy of the optimizer step that the coefficient adapts to.

    After a step whose mean entropy was at most `entropy_target` (nats), an adaptive coefficient grows by
    `entropy_coef_delta`; otherwise it falls. While the entropy is above the target the bonus has no weight.
    """

    def __init__(self, args: Any) -> None:
        self.args = args  # TRL's GRPOConfig
        self.coef: float = args.entropy_coef
        self.entropy = float("inf")  # mean entropy of the last optimizer step, over all processes
        self.sums: Tensor | None = None  # entropy and tokens of the present step, (2,)

    def __bool__(self) -> bool:
        """Return whether the loss has a bonus."""
        return bool(self.args.entropy_coef or self.args.use_adaptive_entropy)

    @property
    def weight(self) -> float:
        """The coefficient that the present optimizer step uses."""
        enough = self.args.use_adaptive_entropy and self.entropy > self.args.entropy_target
        return 0.0 if enough else self.coef

    def add(self, entropy: Tensor, counted: Tensor, accelerator: Any) -> None:
        """Add the entropies of a micro-batch, (B, T), and adapt `coef` at the end of an optimizer step.

        `counted`: (B, T), 1 at the tokens that count.
        """
        sums = torch.stack([(entropy * counted).sum(), counted.sum()]).detach()
        self.sums = sums if self.sums is None else self.sums + sums
        if not (self.args.use_adaptive_entropy and accelerator.sync_gradients):
            return
        total, tokens = accelerator.reduce(self.sums, reduction="sum")
        self.sums, self.entropy = None, (total / tokens.clamp(min=1.0)).item()
        grows = self.entropy <= self.args.entropy_target
        moved = self.coef + (1 if grows else -1) * self.args.entropy_coef_delta
        self.coef = min(max(moved, self.args.entropy_coef_min), self.args.entropy_coef_max)

    def state(self) -> dict[str, float]:
        """Return the state for a checkpoint, which is only saved between optimizer steps."""
        return {"coef": self.coef, "entropy": self.entropy}

    def restore(self, state: dict[str, float]) -> None:
        """Restore what `state` returned."""
        self.coef, self.entropy = state["coef"], state["entropy"]
