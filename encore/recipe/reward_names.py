"""The names of rewards that a recipe may give: common rewards, and rewards of a world or a verifier."""

from collections.abc import Iterable

from encore import own_code
from encore.errors import UserError, nearest
from encore.sandbox.verdicts import REWARDS
from encore.worlds.protocol import World

TESTS = "tests"  # the verifier of programs
OVERLONG = "soft_overlong"
OF_WORLDS = ("lenient", "brief_if_right")
# rewards of encore/rewards/rules.py for every task
COMMON = ("accuracy", "format", "random", "reasoning_style", "brief", "english", OVERLONG)
# rewards that read a stated answer, which programs do not have: encore/rewards/votes.py
OF_ANSWERS = ("majority", "incorrect")


def check_reward_names(names: Iterable[str], world: World | None, verifies: str = "math") -> None:
    """Raise UserError unless each name is a common reward, or a reward of the world or the verifier."""
    tested = not world and verifies == TESTS
    known = [*COMMON, *(REWARDS if tested else OF_ANSWERS), *((*OF_WORLDS, *world.rewards) if world else ())]
    for name in names:
        if own_code.is_own(name):
            try:
                own_code.check_name(name)
            except UserError as error:
                raise UserError(f"rewards.{error}") from None
        elif name not in known:
            raise UserError(f"rewards.{name}: unknown reward{nearest(name, known)}")


def check_overlong(names: Iterable[str], cache: int | None, cap: int | None) -> None:
    """Raise UserError unless soft_overlong and its `cache`, below `cap` tokens, are given together."""
    if (OVERLONG in names) != (cache is not None):
        absent = "soft_overlong_cache" if cache is None else "rewards.soft_overlong"
        raise UserError(f"{absent}: missing; rewards.soft_overlong and soft_overlong_cache go together")
    if cache is not None and cap is not None and cache >= cap:
        raise UserError(
            f"soft_overlong_cache: expected less than args.max_completion_length {cap}, got {cache}"
        )
