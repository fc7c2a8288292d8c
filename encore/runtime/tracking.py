"""The choice `--config track=NAME`: a tracker follows every training of a run, each as a separate run.

The tracker is passed to a stage beside its config, so that results and lineages do not depend on it.
"""

import os
from pathlib import Path

from encore.errors import known
from encore.runtime import extras

TRACKERS = ("tensorboard", "trackio", "wandb")  # packages, by the names that transformers' `report_to` uses
NONE = "none"
CHOSEN, RUN = (
    "ENCORE_TRACK",
    "ENCORE_TRACKED_RUN",
)  # variables that pass the tracker and the stage's name to its trainers
# TensorBoard reads this folder, which has a folder for each run; wandb keeps its files there
FOLDER = Path("runs")


def require(name: str) -> None:
    """Raise UserError if `name` is not a tracker, or its package is not installed."""
    known("--config track", [name], [*TRACKERS], "tracker")
    extras.require(name, f"--config track={name}: {name}", f"pip install {name}", "track")


def choose(name: str, run: str) -> None:
    """Make the tracker `name` follow the trainers of this process as run `run`; with NONE no tracker does."""
    for variable, value in ((CHOSEN, name), (RUN, run)):
        if name == NONE:
            os.environ.pop(variable, None)
        else:
            os.environ[variable] = value


def arguments() -> dict[str, str]:
    """Return fields of TrainingArguments: tracker, project `recipe-scale`, run `arm/seedN/stage`."""
    if CHOSEN not in os.environ:
        return {"report_to": NONE}
    recipe, scale, run = os.environ[RUN].split("/", maxsplit=2)
    return {"report_to": os.environ[CHOSEN], "project": f"{recipe}-{scale}", "run_name": run}
