"""The positions that a model's forward passes run over: real tokens, and the padding beside them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def positions_run(model: Any) -> Iterator[list[int]]:
    """Return the positions, rows times width, of each forward pass of `model` in the `with` block."""
    passes: list[int] = []

    def add(_module: Any, _args: Any, inputs: dict[str, Any]) -> None:
        passes.append(inputs["input_ids"].numel())

    hook = model.register_forward_pre_hook(add, with_kwargs=True)
    try:
        yield passes
    finally:
        hook.remove()
