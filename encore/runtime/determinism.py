"""The key `deterministic: true`: torch and vLLM compute the same numbers in each run on the same GPU."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from encore.errors import UserError

# Where nothing trains, vLLM's numbers do not depend on which requests it happens to compute together. In a
# process that trains this mode must stay off, because it replaces operations by some without a gradient. An
# engine in such a process takes the same requests together in each run (vLLM's manual, "Reproducibility").
BATCH_INVARIANT = {"VLLM_BATCH_INVARIANT": "1"}
LACKING = " does not have a deterministic implementation"  # words of torch, after an operation's name


@contextmanager
def deterministic(asked: bool, trains: bool = False) -> Iterator[None]:
    """Compute deterministically in the `with` block, if `asked`.

    `trains`: whether the process trains a model. Enter it before the process uses a GPU or imports vLLM.
    Raises UserError if an operation of the block has no deterministic algorithm.
    """
    if not asked:
        yield
        return
    # cuBLAS and the package flash-attn read these where they are first used
    os.environ |= {"CUBLAS_WORKSPACE_CONFIG": ":4096:8", "FLASH_ATTENTION_DETERMINISTIC": "1"}
    if not trains:
        os.environ |= BATCH_INVARIANT
    import torch  # imported here, because runtime is also imported by code that must not load torch

    torch.use_deterministic_algorithms(True)
    # torch would also fill each new tensor before its use, which costs time
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    try:
        yield
    except RuntimeError as error:
        operation, lacking, _ = str(error).partition(LACKING)
        if not lacking:
            raise
        raise UserError(
            f"deterministic: true, but torch has no deterministic algorithm for {operation}; remove it, or "
            "the setting that needs the operation (as top_p below 1 needs cumsum)"
        ) from error
    finally:
        torch.use_deterministic_algorithms(False)
