"""The reference model of TRL's trainers on several GPUs: spread layer by layer, as the policy is.

TRL shards it as one unit, so that each forward pass gathers all its weights at once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from encore.models.sharded import spread


@contextmanager
def by_layers(module: Any) -> Iterator[None]:
    """While it lasts, a trainer of TRL's that is made spreads its reference `as_policy`.

    `module`: where TRL defines that trainer, and from where it takes `prepare_fsdp`.
    """
    plain = module.prepare_fsdp
    module.prepare_fsdp = lambda model, accelerator: as_policy(model, accelerator).eval()
    try:
        yield
    finally:
        module.prepare_fsdp = plain


def as_policy(model: Any, accelerator: Any) -> Any:
    """`model`, spread over all processes, in the precision that `accelerator` has the policy compute in."""
    return spread(model, accelerator.state.fsdp_plugin.mixed_precision_policy)
