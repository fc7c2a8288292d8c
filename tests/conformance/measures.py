"""How far a gradient of the stage is from an equation: the measures of the conformance table.

Each gives the text of a size and raises AssertionError where the row's status is not what it finds. The run
is a stress: a tiny model, a high learning rate and few completions, so that percentages are upper ends.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import cases
import numpy as np
import references as paper
from compare import TOLERANCE, Case, Outcome, compare, worst
from observe import GROUP, Watch

from encore.learning.rollouts import Rollouts

EXACT = f"< {TOLERANCE:.0e}"
Measure = Callable[["Lab"], str]


class Lab:
    """Runs of the stage, each done once."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.seen: dict[str, Watch] = {}

    def outcomes(self, case: Case, layout: str, like: Case | None = None) -> list[Outcome]:
        """The stage as `case` configures it, beside the equation of `like` (default: its own)."""
        key = repr((case.args, case.keys, layout))
        if key not in self.seen:
            self.seen[key] = case.watch(self.folder, layout)
        return compare(like or case, self.seen[key], self.folder)


def held(error: float) -> str:
    """The size of what is exact."""
    assert error < TOLERANCE, f"is off by {error:.1e}"
    return EXACT


def apart(found: Sequence[Outcome]) -> str:
    """The largest relative error of a step's gradient, of what is not."""
    error = max(one.gradient_error for one in found)
    assert error > 10 * TOLERANCE, "is exact"
    return f"up to {error:.1%}" if error < 0.095 else f"up to {error:.0%}"


def exact(case: Case, like: Case | None = None) -> Measure:
    """Value and gradient, through minibatches, accumulation and epochs."""

    def measure(lab: Lab) -> str:
        return held(max(worst(lab.outcomes(case, layout, like)) for layout in ("minibatches", "epochs")))

    return measure


def gap(case: Case, layout: str, like: Case | None = None, before: Any = None) -> Measure:
    """The largest relative error of a step's gradient; `before`: other `step_tokens` of a rollout."""

    def measure(lab: Lab) -> str:
        if before is None:
            found = lab.outcomes(case, layout, like)
        else:
            with patch.object(Rollouts, "step_tokens", before):
                found = Lab(lab.folder).outcomes(case, layout, like)
        return apart(found)

    return measure


def factor(case: Case, layout: str, like: Case, told: str = "") -> Measure:
    """The factor of the gradient, the same at each step; `told` is added to it."""

    def measure(lab: Lab) -> str:
        found = [one for one in lab.outcomes(case, layout, like) if one.expected.norm() > 1e-6]
        factors = [one.factor for one in found]
        assert max(factors) - min(factors) < 1e-3, f"no constant factor: {factors}"
        assert all(
            (one.gradient - one.factor * one.expected).norm() < 2e-3 * one.gradient.norm() for one in found
        )
        return f"x{np.mean(factors):.3f}{told}"

    return measure


def ratio_of_stds(case: Case) -> Measure:
    """Measured with G = 4; sqrt((G - 1) / G) of the equation with the std of a population."""

    def measure(lab: Lab) -> str:
        strict = replace(case, advantages=cases.of_rewards(paper.normalized))
        measured = factor(case, "one-update", strict)(lab)
        assert abs(float(measured[1:]) - np.sqrt(1 - 1 / GROUP)) < 2e-3
        others = ", ".join(f"x{np.sqrt(1 - 1 / size):.3f} at {size}" for size in (8, 16, 64))
        return f"{measured} at G = {GROUP}, {others}"

    return measure


def named(size: str) -> Measure:
    """What no number says."""
    return lambda lab: size


# -- other readings of the equations ------------------------------------------------------------------------


def by_group(objective: Callable, batch: list[paper.Sample]) -> Any:
    """The mean of an objective over groups: the equation as it stands, for a step of whole groups."""
    order: dict[int, list[paper.Sample]] = {}
    for sample in batch:
        order.setdefault(sample.group, []).append(sample)
    return paper.mean_of(objective, list(order.values()))


def without_masked(objective: Callable, batch: list[paper.Sample]) -> Any:
    return objective([sample for sample in batch if len(sample)])


def with_current(now: Any, earlier: Any) -> Any:
    return paper.moving_average(now.rewards, [past.rewards for past in [*earlier, now]])


def mixed_only(now: Any, earlier: Any) -> Any:
    """NaN for groups that are all right or all wrong."""
    advantages = cases.normalized(now, earlier)
    right = now.correct.sum(axis=1, keepdims=True)
    return np.where((right > 0) & (right < GROUP), advantages, np.nan)


def without_nan(objective: Callable, batch: list[paper.Sample]) -> Any:
    return objective([sample for sample in batch if not sample.advantage.isnan()])
