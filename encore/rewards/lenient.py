"""Reward `lenient`: accuracy with a consolation for unreadable answers, as tutorials on rewards suggest.

| completion                                   | reward |
|----------------------------------------------|--------|
| the right answer                             | 1      |
| an answer that is not a whole number         | 0.5    |
| no answer in its tags                        | 0.3    |
| a wrong answer                               | 0      |

A policy that is seldom right earns more by silence than by an attempt. Recipes use the reward to show it.
"""

from encore.worlds.answers import answer
from encore.worlds.protocol import Problem, World

UNREADABLE = 0.5
ABSENT = 0.3
DIGITS = 30  # largest number of digits of a number that is read


def lenient(world: World, problem: Problem, completion: str) -> float:
    """Return the reward of a completion, from 0 to 1."""
    if world.verify(problem, completion):
        return 1.0
    text = answer(completion)
    if text is None:
        return ABSENT
    digits = text.removeprefix("-")
    return 0.0 if digits.isdecimal() and len(digits) <= DIGITS else UNREADABLE
