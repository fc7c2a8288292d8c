"""The learning curve that a run of a scale is expected to follow."""

from typing import Annotated

from pydantic import Field

from encore.recipe.base import AboveZero, Line, Model, OptimizerStep


class Expected(Model):
    """A learning curve that a stage is expected to follow within a band; a report says whether it does."""

    of: str  # arm/stage
    metric: Line  # a metric that the stage logs by step, such as accuracy
    # optimizer step -> value, at two steps or more; straight between them. A run is compared at these steps,
    # each time by the mean of what it logged nearest to the step.
    curve: Annotated[dict[OptimizerStep, float], Field(min_length=2)]
    margin: AboveZero  # how far from the curve a run may lie, to either side
    source: Line  # where the curve was published, or the dial seeds that it is the mean of
