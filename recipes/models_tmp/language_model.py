"""TODO."""

from typing import Any

import torch

from recipes import models


def load_for_inference(source: models.Source) -> Any:
    """The causal language model of `source`, on the GPU if there is one."""
    dtype = torch.float32 if device() == "cpu" else "auto"
    return models.load(source, dtype=dtype).to(device())


def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"
