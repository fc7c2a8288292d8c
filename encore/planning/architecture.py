"""What decides the memory and the operations of a model."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Model = str  # a recipe's key `model`, as JSON


@dataclass(frozen=True)
class Architecture:
    """What decides memory and operations; numbers of parameters unless another unit is said."""

    name: str
    parameters: int
    active: int  # those that a token is multiplied with: no input embedding, of the experts those it visits
    embedding: int
    head: int  # of the output; also where it is the embedding
    tied: bool
    largest_layer: int
    linear: int  # inputs and outputs of all linear layers, for LoRA: rank times this are trained
    layers: int
    hidden: int  # numbers of a token in the residual stream
    attention: int  # numbers of a token's queries, all heads
    cached: int  # numbers of a token's keys and values that a server keeps, a layer
    inner: int  # numbers of a token inside a layer's MLP, in the experts that it visits
    vocabulary: int
    positions: int | None
    experts: int = 1
    visited: int = 1  # experts a token visits

    @property
    def sparse(self) -> bool:
        return self.experts > 1


def named(model: Mapping[str, Any]) -> Model:
    """`{hub, revision}`, `{path}` or the shape of a model from nothing, as text that can be compared."""
    return json.dumps({key: value for key, value in model.items() if value is not None}, sort_keys=True)
