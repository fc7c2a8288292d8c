"""The tools that a policy may call."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from encore.recipe.base import Mistake, Model, Positive
from encore.worlds import STATEFUL
from encore.worlds.products import CALL, RESULT

Around = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False, min_length=2, max_length=2)
]


class Tool(Model):
    """A tool that the policy may call (encore/sampling/tools.py)."""

    # python runs in the sandbox; the others are worlds with a state, in which the calls act
    name: Literal["calculator", "python", "bandit_arms", "frozen_lake", "shop", "sokoban"]
    calls: Positive  # calls answered in one completion; further calls get no answer
    longest: Positive  # tokens of a result; longer results are cut
    call: Around = CALL  # the texts before and after a call; the second must be one token
    result: Around = RESULT  # the texts before and after its result

    def mistakes(self, world: str | None) -> Iterator[Mistake]:
        """Yield a mistake if the tool acts in a world, and `world`, the task's, is another or None."""
        if self.name in STATEFUL and world != self.name:
            asked = f"the task's world is {world}" if world else "the task has no world"
            yield (
                "tool.name",
                f"the calls act in world {self.name}, but {asked}; set task.world to {self.name}",
            )
