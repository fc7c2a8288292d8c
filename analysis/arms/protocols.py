"""The published protocols that a run's evaluation tasks follow, and their departures from these protocols."""

from typing import Any, NamedTuple

from analysis.numbers.run import Run
from encore.recipe.protocols import KEY, departures, protocols


class Followed(NamedTuple):
    """An evaluation task that follows a published protocol."""

    task: str
    protocol: str
    source: str
    # settings that the task changes, such as `max_gen_toks 4096 in place of 32768`; "" if there are none
    own: str


def followed(run: Run) -> list[Followed]:
    """Return each task that names a protocol; a task that is the same in several arms comes once."""
    result: dict[Followed, None] = {}
    for arm in run.arms:
        for name, task in run.recipe.layers.merged(run.scale, arm, "evals").get("tasks", {}).items():
            if KEY in task:
                changes = [
                    f"{key} {_shown(ours)} in place of {_shown(theirs)}"
                    for key, (theirs, ours) in departures(task).items()
                ]
                source = protocols()[task[KEY]]["source"]
                result[Followed(name, task[KEY], source, ", ".join(changes))] = None
    return list(result)


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)
