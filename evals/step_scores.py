"""Scores of a whole solution from its steps: a process reward model's score, and the trace.

A process reward model gives each step the probability to be right. For the whole solution they are
multiplied, the probability that every step is right, or their minimum is taken (Lightman et al. 2023, arXiv
2305.20050); the answer is the last step. The probability of the last step alone is score `proxy`. A trace is
right if no step is wrong; Uesato et al. (2022, arXiv 2211.14275) count the right answers whose trace is not.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from encore.data import samples
from encore.models.reward_model import RewardModel
from encore.rewards import learned
from encore.rewards.step_rewards import placer
from encore.worlds.protocol import Problem, World

MADE: Mapping[str, Callable[[Sequence[float]], float]] = {"proxy_product": sum, "proxy_min": min}


def log_chances(model: RewardModel, rows: Sequence[Mapping[str, Any]], world: World | None) -> list:
    """Return for each completion log sigmoid(r) at the end of each of its steps, and at its own end.

    `world` is None for a data set, whose steps are lines.
    """
    place = placer(world, model.tokenizer, special=True)
    sequences: list[list[int]] = []
    places: list[list[int]] = []
    for row in rows:
        problem = samples.problem(row)
        for completion in row["completions"]:
            ends = place(problem, str(completion), [*completion.ids])
            sequences.append([*completion.context, *completion.ids])
            places.append([len(completion.context) + end for end in ends])
    return learned.log_chances(model, sequences, places)


def right_trace(world: World, problem: Problem, whole: str) -> float:
    """Return 1 if there are steps and none of them is wrong, else 0."""
    steps = world.steps(problem, whole)
    return float(bool(steps) and all(steps))


def scores(chances: Sequence[Sequence[float]], name: str) -> list[float]:
    """Return the score `name` of each completion: the log of its steps' product or minimum."""
    return [float(MADE[name](steps)) for steps in chances]
