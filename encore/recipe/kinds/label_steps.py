"""Stage `label_steps`: each step of a solution is labelled right or wrong."""

from collections.abc import Iterator
from typing import Literal

from encore.recipe.args import DrawingArgs
from encore.recipe.base import Mistake, Positive, below
from encore.recipe.form import placed
from encore.recipe.kinds.stage import FromPolicy, rule
from encore.recipe.machine import Engine
from encore.recipe.task import LabelledSteps

OF_ROLLOUTS = ("args", "estimation", "backend", "backend_args", "dtype", "batch_size", "model")
OF_DATASETS = ("task", "template", "problems")


class LabelStepsStage(FromPolicy, Engine):
    """A stage that makes step labels, by rollouts from each step of samples or from a labelled data set."""

    product = "step labels"
    takes = {"data": "samples"}

    run: Literal["label_steps"]
    needs: dict[Literal["data", "policy"], str] = {}
    args: DrawingArgs | None = None  # for rollouts: the arguments of drawing
    # rollouts: the policy continues from each step; dataset: the labels of a Hub dataset
    by: Literal["rollouts", "dataset"]
    # for rollouts: hard (default): a step is right if one rollout ends right; soft: its label is the share
    # that do
    estimation: Literal["hard", "soft"] | None = None
    task: LabelledSteps | None = None  # for dataset: the task; template and problems as well
    template: str | None = None
    problems: Positive | None = None  # number of rows, the first ones

    def unsound(self) -> Iterator[Mistake]:
        """Yield the mistakes within the task and the template."""
        if self.task is not None:
            yield from below("task", self.task.mistakes())
        if self.template is not None:
            yield from placed("template", self.template)

    @rule
    def _one_start(self) -> Iterator[Mistake]:
        """Yield a mistake if labels by rollouts do not start from exactly one model."""
        if self.by == "rollouts":
            yield from super()._one_start()

    @rule
    def _keys_of_by(self) -> Iterator[Mistake]:
        """Yield keys and roles that `by` does not use, and keys and roles that are missing for it."""
        for key in OF_DATASETS if self.by == "rollouts" else OF_ROLLOUTS:
            if key in self.model_fields_set:
                yield key, f"by: {self.by} does not use it; remove it"
                return
        if self.by == "rollouts":
            if "data" not in self.needs:
                yield "needs.data", "missing; by: rollouts continues from the steps of its samples"
            if self.args is None:
                wanted = ", ".join(DrawingArgs.model_fields)
                yield "args", f"missing; by: rollouts needs {wanted}"
            return
        for role in self.needs:
            yield f"needs.{role}", "by: dataset does not use it; remove it"
            return
        for key in ("task", "template"):
            if key not in self.model_fields_set:
                yield key, f"missing; by: dataset needs {' and '.join(OF_DATASETS[:2])}"
                return
