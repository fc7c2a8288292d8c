"""Stage `label_steps`: each step of a solution is labelled right or wrong."""

from typing import Literal

from encore.recipe.args import DrawingArgs
from encore.recipe.base import Positive
from encore.recipe.kinds.stage import Backend, BackendArgs, Dtype, RawTask, Source, Stage


class LabelStepsStage(Stage):
    """The steps of samples are labelled by going on from each, or are those of a data set."""

    product = "step labels"
    takes = {"data": "samples"}
    data_set = "task-hub-steps"

    run: Literal["label_steps"]
    needs: dict[Literal["data", "policy"], str] = {}
    args: DrawingArgs | None = None  # of rollouts
    by: Literal["rollouts", "dataset"]  # the policy goes on from each step; or the labels of a Hub dataset
    # of rollouts: a step is right if one ends right (default), or as often as they do
    estimation: Literal["hard", "soft"] | None = None
    backend: Backend | None = None  # of rollouts; these four as in evals
    backend_args: BackendArgs | None = None
    dtype: Dtype | None = None
    batch_size: Positive | None = None
    model: Source | None = None  # of rollouts, in place of needs.policy
    task: RawTask | None = None  # of a dataset: as template and problems
    template: str | None = None
    problems: Positive | None = None  # how many rows, the first ones
