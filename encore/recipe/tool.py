"""The tools that a policy may call."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field

from encore import own_code
from encore.errors import nearest
from encore.recipe.base import Mistake, Model, Positive, refuse
from encore.worlds import STATEFUL
from encore.worlds.products import CALL, RESULT

Around = Annotated[
    tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False, min_length=2, max_length=2)
]


def _known(name: str) -> str:
    """Return the name of a tool or of a world with a state; refuse any other."""
    names = ["calculator", "python", *STATEFUL]
    if name not in names and not own_code.is_own(name):
        refuse(f'no tool "{name}"{nearest(name, names)}')
    return name


class Tool(Model):
    """A tool that the policy may call (encore/sampling/tools.py)."""

    # calculator; python, which runs in the sandbox; or a world with a state, in which the calls act:
    # bandit_arms, frozen_lake, shop, sokoban, or my_module:Class (docs/world.md)
    name: Annotated[str, AfterValidator(_known)]
    calls: Positive  # calls answered in one completion; further calls get no answer
    longest: Positive  # tokens of a result; longer results are cut
    call: Around = CALL  # the texts before and after a call; the second must be one token
    result: Around = RESULT  # the texts before and after its result

    @property
    def acts(self) -> bool:
        """Whether the calls act in the world of the task, which has a state."""
        return self.name in STATEFUL or own_code.is_own(self.name)

    def mistakes(self, world: str | None) -> Iterator[Mistake]:
        """Yield a mistake if the tool acts in a world, and `world`, the task's, is another or None."""
        if self.acts and world != self.name:
            asked = f"the task's world is {world}" if world else "the task has no world"
            yield "name", f"the calls act in world {self.name}, but {asked}; set task.world to {self.name}"
