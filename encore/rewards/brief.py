"""Rewards for short reasoning, which is at odds with right answers where a problem takes many steps.

| name           | 1 when, else 0                                                                |
|----------------|-------------------------------------------------------------------------------|
| brief          | the text inside `<think>` is at most `LIMIT` times as long as the question    |
| brief_if_right | the same, and the answer is right: a condition, as GDPO (arXiv 2601.05242)    |
|                | puts an easy reward under a hard one                                          |

Lengths are counted in characters.
"""

from encore.worlds.answers import scratchpad
from encore.worlds.protocol import Problem, World

LIMIT = 2.0  # a sum worked out term by term is 2 to 3 times as long as its question


def brief(problem: Problem, completion: str) -> float:
    """Return 1 if the reasoning is short for its question, else 0."""
    return float(len(scratchpad(completion).strip()) <= LIMIT * len(problem.question))


def brief_if_right(world: World, problem: Problem, completion: str) -> float:
    """Return 1 if the reasoning is short for its question and the answer is right, else 0."""
    return brief(problem, completion) * float(world.verify(problem, completion))
