"""A job: a stage as its recipe says it, and where it reads and writes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from encore.recipe.kinds import read
from encore.recipe.kinds.stage import FromPolicy, Stage
from encore.runtime.progress import Progress

DECONTAMINATE = "decontaminate"
CODE = "code"  # the digests of own code, beside its names: they shape the lineage, and no job reads them
DataSets = Mapping[str, Mapping[str, Any]]  # the name of an evaluation's task -> its data set


@dataclass(frozen=True)
class Job:
    """What a stage is given beside its own keys."""

    inputs: Mapping[str, Path]  # role -> metrics.json of the stage that plays it
    seed: int
    workdir: Path  # of the training state; the product is its folder `final`
    out: Path  # metrics.json; the files of a kind of stage go beside it
    progress: Progress
    evaluated: DataSets = field(default_factory=dict)  # what `decontaminate` keeps out


def typed(kind: str, config: Mapping[str, Any]) -> tuple[Stage, DataSets]:
    """Return the stage of a resolved configuration, and the data sets that it must not learn from.

    A resolved configuration (`Graph.config`) names these data sets at `decontaminate`, and has the digests of
    own code. Raises UserError with all mistakes.
    """
    said, evaluated = _without_code({**config, "run": kind}), config.get(DECONTAMINATE)
    if not isinstance(evaluated, Mapping):
        return read(said), {}
    return read({**said, DECONTAMINATE: True}), evaluated


def from_policy(config: Mapping[str, Any]) -> FromPolicy:
    """Return the stage of a resolved configuration that starts from a policy."""
    stage, _ = typed(config["run"], config)
    assert isinstance(stage, FromPolicy)
    return stage


def _without_code(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_code(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _without_code(item) for key, item in value.items() if key != CODE}
    return value
