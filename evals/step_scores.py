"""Scores of a whole solution from its steps: by a process reward model, or by the world's step verifier.

A process reward model gives each step the probability of being right. For the whole solution these are
multiplied, which gives the probability that every step is right, or their minimum is taken (Lightman et al.
2023, arXiv 2305.20050). The answer is the last step; its probability alone is score `proxy`. A trace is right
if no step is wrong; Uesato et al. (2022, arXiv 2211.14275) count right answers with a wrong trace.
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
    """Return for each completion the log-probability that each step is right; the answer is the last step.

    It is log sigmoid of the reward at the step's end. `world` is None for a data set, whose steps are lines.
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
    """Return 1 if the completion `whole` has steps and none of them is wrong, else 0."""
    steps = world.steps(problem, whole)
    return float(bool(steps) and all(steps))


def scores(chances: Sequence[Sequence[float]], name: str) -> list[float]:
    """Return the score `name` of each completion: the log of the product or of the minimum over its steps."""
    return [float(MADE[name](steps)) for steps in chances]
