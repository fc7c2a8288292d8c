"""Mistakes with their place in the recipe."""

from collections.abc import Iterator
from contextlib import contextmanager

from encore.errors import UserError


@contextmanager
def under(path: str, where: str) -> Iterator[None]:
    """Raise the mistakes found in the block with their place in the recipe."""
    try:
        yield
    except UserError as error:
        lines = (f"{path}.{line.removeprefix('task.')}{where}" for line in error.lines)
        raise UserError("\n".join(lines)) from None
