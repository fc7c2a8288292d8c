"""The job of a stage: the stage as its recipe describes it, its inputs, and the folders that it writes to."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from encore.data.prompts import DataSets
from encore.recipe.data_sets import unpinned
from encore.recipe.eval_tasks import data_set
from encore.recipe.kinds import read_stage
from encore.recipe.kinds.stage import Stage
from encore.recipe.task import Asked, QuestionTask
from encore.runtime import sentinel
from encore.runtime.progress import Progress

DECONTAMINATE = "decontaminate"


@dataclass(frozen=True)
class Job:
    """The inputs and folders that a stage gets besides its keys."""

    inputs: Mapping[str, Path]  # role -> metrics.json of the stage in this role
    seed: int
    workdir: Path  # folder of the training state; the product is its folder `final`
    out: Path  # metrics.json; other files of a kind of stage go beside it
    progress: Progress
    evaluated: DataSets = field(default_factory=dict)  # data sets that are kept out of the training data


def typed(kind: str, config: Mapping[str, Any]) -> tuple[Stage, DataSets]:
    """Return the stage of a resolved configuration, and the data sets that it must not learn from.

    A resolved configuration (`Graph.config`) names these data sets under `decontaminate`, and has the digests
    of the user's code. Raises UserError with all mistakes.
    """
    said, evaluated = unpinned({**config, "run": kind}), config.get(DECONTAMINATE)
    if not isinstance(evaluated, Mapping):
        return read_stage(said), {}
    data_sets = {name: data_set(unpinned(task)) for name, task in evaluated.items()}
    return read_stage({**said, DECONTAMINATE: True}), data_sets


def asked_by(metrics_json: Path) -> Asked:
    """Return the task and the prompt form of samples, from the metrics.json of the stage that drew them."""
    config = unpinned(sentinel.read_sentinel(metrics_json)["config"])
    return Asked.model_validate({key: config[key] for key in Asked.model_fields if key in config})


def task_of(metrics_json: Path) -> QuestionTask:
    """Return the task of samples, from the metrics.json of the stage that drew them."""
    return asked_by(metrics_json).questions
