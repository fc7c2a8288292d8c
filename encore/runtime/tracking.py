"""`--config track=NAME`: a tracker follows every training of a run, each as a run of its own.

The tracker is told to a stage beside its config: results and lineages are the same with any and with none.
"""

import os
from pathlib import Path

from encore.errors import known
from encore.runtime import extras

TRACKERS = ("tensorboard", "trackio", "wandb")  # packages, and so transformers' `report_to` calls them
NONE = "none"
CHOSEN, RUN = "ENCORE_TRACK", "ENCORE_TRACKED_RUN"  # a stage tells its trainers: a tracker, its own name
FOLDER = Path("runs")  # what TensorBoard reads, a folder a run, and where wandb keeps its files


def require(name: str) -> None:
    """Raise UserError where `name` is no tracker, or its package is not installed."""
    known("--config track", [name], [*TRACKERS], "tracker")
    extras.require(name, f"--config track={name}: {name}", f"pip install {name}", "track")


def choose(name: str, run: str) -> None:
    """Have the trainers of this process followed by `name`, or by NONE, in the stage `run`."""
    for variable, value in ((CHOSEN, name), (RUN, run)):
        if name == NONE:
            os.environ.pop(variable, None)
        else:
            os.environ[variable] = value


def arguments() -> dict[str, str]:
    """Fields of TrainingArguments: the tracker, its project `recipe-scale` and run `arm/seedN/stage`."""
    if CHOSEN not in os.environ:
        return {"report_to": NONE}
    recipe, scale, run = os.environ[RUN].split("/", maxsplit=2)
    return {"report_to": os.environ[CHOSEN], "project": f"{recipe}-{scale}", "run_name": run}
