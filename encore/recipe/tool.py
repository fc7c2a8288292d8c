"""The tools that a policy may call."""

from typing import Annotated, Literal

from pydantic import Field

from encore.recipe.base import Model, Positive
from encore.worlds.products import CALL, RESULT

Around = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False, min_length=2, max_length=2)
]


class Tool(Model):
    """A tool that the policy may call (encore/sampling/tools.py)."""

    name: Literal["calculator", "python"]  # python: in the sandbox
    calls: Positive  # answered in one completion; further ones are not
    longest: Positive  # tokens of a result; what is longer is cut
    call: Around = CALL  # the texts around a call; the second is one token
    result: Around = RESULT  # and around its result
