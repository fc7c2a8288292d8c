"""The names under which a policy's weights are sent to vLLM."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor
from transformers.core_model_loading import revert_weight_conversion
from trl.generation.vllm_generation import VLLMGeneration

NAME = "_iter_named_params"  # TRL's method that yields what is sent


@contextmanager
def as_saved() -> Iterator[None]:
    """Send weights in the `with` block as a checkpoint has them, which is what vLLM loads.

    TRL sends the parameters of the model in memory. There transformers 5 may give them other names (the head
    of GPT-NeoX is `lm_head`, saved as `embed_out`) and may join several into one (the experts of a layer).
    vLLM refuses names that no checkpoint has.
    """
    plain = getattr(VLLMGeneration, NAME)

    def iterate(self: Any) -> Iterator[tuple[str, Tensor]]:
        for name, parameter in plain(self):
            yield from revert_weight_conversion(self.model, {name: parameter}).items()

    setattr(VLLMGeneration, NAME, iterate)
    try:
        yield
    finally:
        setattr(VLLMGeneration, NAME, plain)
