"""The tasks that a world makes: one of Encore's or of a user, a task of reasoning-gym, or an environment."""

from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from encore import own_code, worlds
from encore.errors import UserError, nearest
from encore.recipe.base import Mistake, Model, Positive, refuse
from encore.worlds import World
from encore.worlds.environment import LIBRARIES
from encore.worlds.environment import make as make_environment


def own_mistakes(key: str, name: str) -> Iterator[Mistake]:
    """Yield a mistake if the user's function or class `name` (my_module:function) does not exist."""
    try:
        own_code.check_name(name)
    except UserError as error:
        yield key, str(error)


class Task(Model):
    """The source of questions, demonstrations or preferences."""

    @property
    def is_verified(self) -> bool:
        """Whether right answers can be distinguished from wrong ones."""
        return False

    @property
    def verifies(self) -> str:
        """The name of the verifier of a data set, math if it names none."""
        return "math"

    def make_world(self) -> World | None:
        """Return the world; None for a data set. Raises UserError for a dial that the world does not have."""
        return None

    @property
    def tools(self) -> Callable[[], Sequence[Any]] | None:
        """A function that returns the JSON schemas of the task's tools; None if it has none."""
        return None

    def mistakes(self) -> Iterator[Mistake]:
        """Yield the mistakes of keys that contradict each other."""
        yield from ()


def _environment(name: str) -> str:
    """Return the name of an environment; refuse any other."""
    if name not in LIBRARIES and not own_code.is_own(name):
        refuse(f'no environment "{name}"{nearest(name, [*LIBRARIES, "my_module:Class"])}')
    return name


class WorldTask(Task):
    """The problems of a world. The other keys are its dials: the fields of its class in encore/worlds."""

    model_config = ConfigDict(extra="allow")

    world: str  # a name of encore/worlds, or my_module:Class

    @property
    def is_verified(self) -> bool:
        """True: a world verifies every answer."""
        return True

    @property
    def gives_feedback(self) -> bool:
        """Whether the world says in words why a completion is wrong."""
        return hasattr(self.make_world(), "feedback")

    def make_world(self) -> World:
        """Return the world with these dials. Raises UserError for a dial that the world does not have."""
        return worlds.make(self.model_dump())

    def mistakes(self) -> Iterator[Mistake]:
        """Raise UserError at the first dial that the world does not have, or that is beyond its limits."""
        self.make_world()
        yield from ()


class GymTask(WorldTask):
    """A task of the library reasoning-gym by its name, such as chain_sum; the library's scorer verifies.

    The other keys are fields of the task's configuration in the library. Their mistakes are reported when a
    run that draws from the task is planned, because not everybody who reads a recipe has the library.
    """

    reasoning_gym: str
    world: Literal["reasoning_gym"] = "reasoning_gym"  # set by this class, not written in a recipe


class EnvironmentTask(WorldTask):
    """Episodes of an environment of a user, as TRL's `environment_factory` takes it, or of a library.

    The other keys are arguments of the class, or of the library's client (encore/worlds/environment.py).
    Their mistakes are reported when a run that draws from the task is planned.
    """

    environment: Annotated[str, AfterValidator(_environment)]  # my_module:Class, openenv or verifiers
    world: Literal["environment"] = "environment"  # set by this class, not written in a recipe
    right: float = 1.0  # the reward from which an episode counts as right
    reward_range: Annotated[tuple[float, ...], Field(strict=False, min_length=2, max_length=2)] = (0.0, 1.0)
    episodes: Positive = 1_000_000  # number of different episodes; their numbers begin at 0
    sessions: Positive = 1024  # largest number of instances, or of connections to a server, at a time
    seconds: Annotated[float, Field(gt=0)] = own_code.LIMIT  # longest time of one call

    @property
    def tools(self) -> Callable[[], Sequence[Any]] | None:
        """A function that opens the environment, and returns the JSON schemas of its tools."""
        return make_environment(self.model_dump()).tools

    def mistakes(self) -> Iterator[Mistake]:
        """Yield mistakes: a class that does not exist, and a range without a number in it."""
        if own_code.is_own(self.environment):
            yield from own_mistakes("environment", self.environment)
        low, high = self.reward_range
        if low >= high:
            yield "reward_range", f"expected the lowest reward and then the highest, got {low:g} and {high:g}"
        elif not low < self.right <= high:
            yield "right", f"expected more than {low:g} and at most {high:g}, the range, got {self.right:g}"
