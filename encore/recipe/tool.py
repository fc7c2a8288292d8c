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

    name: Literal["calculator", "python"]  # python runs in the sandbox
    calls: Positive  # calls answered in one completion; further calls get no answer
    longest: Positive  # tokens of a result; longer results are cut
    call: Around = CALL  # the texts before and after a call; the second must be one token
    result: Around = RESULT  # the texts before and after its result
