"""The published protocols that a run's evaluation tasks follow, and where they depart from them."""

from typing import Any

from analysis.numbers.run import Run
from encore.recipe.protocols import KEY, departures, protocols


def followed(run: Run) -> list[dict[str, str]]:
    """Of each task that names a protocol, once for all arms that have it alike: task, protocol, source, own.

    `own`: what the task sets itself, `max_gen_toks 4096 in place of 32768`; empty where it sets nothing.
    """
    found = []
    for arm in run.arms:
        for name, task in run.recipe.layers.merged(run.scale, arm, "evals").get("tasks", {}).items():
            if KEY in task:
                own = [
                    f"{key} {_shown(ours)} in place of {_shown(theirs)}"
                    for key, (theirs, ours) in departures(task).items()
                ]
                row = {"task": name, "protocol": task[KEY], "own": ", ".join(own)}
                found.append(row | {"source": protocols()[task[KEY]]["source"]})
    return [row for index, row in enumerate(found) if row not in found[:index]]


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) else str(value)
