"""Liger's kernels (arXiv 2410.10989): RMSNorm, rotary positions and gated MLPs as one operation each.

They are written in Triton and run on a GPU alone. The package is in the extra `liger`, from PyPI. The kernels
that transformers offers by `use_kernels` are Liger's too, but each job would fetch them as code from the Hub.
"""

from typing import Any

import torch
from transformers.integrations import apply_liger_kernel

from encore.errors import UserError

# Liger's losses stay off: TRL's own tiles compute log-probabilities without all logits
NO_LOSS = {"cross_entropy": False, "fused_linear_cross_entropy": False}


def fused(model: Any) -> Any:
    """Return `model`, which on a GPU now computes by Liger's kernels; on a CPU it is unchanged.

    So do models of its architecture that the process makes later. Raises UserError if Liger has no kernels
    for the architecture.
    """
    if not torch.cuda.is_available():
        return model
    # imported here, because Liger is an optional package
    from liger_kernel.transformers.monkey_patch import MODEL_TYPE_TO_APPLY_LIGER_FN

    kind = model.config.model_type
    if kind not in MODEL_TYPE_TO_APPLY_LIGER_FN:
        raise UserError(
            f"args.use_liger_kernel: true, but Liger has no kernels for a {kind} model; remove it"
        )
    apply_liger_kernel(model, NO_LOSS)
    return model
