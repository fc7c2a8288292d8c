"""The sizes that decide the memory and the operations of a model."""

from dataclasses import dataclass

from encore.recipe.machine import Elsewhere
from encore.recipe.shape import Shape

Model = Elsewhere | Shape  # a recipe's key `model`


@dataclass(frozen=True)
class Architecture:
    """The sizes that decide memory and operations; they are numbers of parameters unless a unit is given."""

    name: str
    parameters: int
    active: int  # parameters that a token is multiplied with: no input embedding, only the experts it visits
    embedding: int
    head: int  # parameters of the output head, even if it is the embedding
    tied: bool
    largest_layer: int
    linear: int  # sum of inputs and outputs of all linear layers; LoRA trains rank times this number
    layers: int
    hidden: int  # numbers of a token in the residual stream
    attention: int  # numbers of a token's queries, all heads
    cached: int  # numbers of a token's keys and values that a server caches, for each layer
    inner: int  # numbers of a token inside a layer's MLP, in the experts that it visits
    vocabulary: int
    positions: int | None
    experts: int = 1
    visited: int = 1  # number of experts that a token visits

    @property
    def sparse(self) -> bool:
        return self.experts > 1
