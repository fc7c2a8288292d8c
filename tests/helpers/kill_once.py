"""Kills a run in the middle of each stage of recipe r1, once; a test puts this file into the run's folder."""

import os
import signal
from pathlib import Path

from encore.data import demonstrations, preferences, samples
from encore.learning.resumable import Resumable

KILLED = Path("killed")  # where this folder is, each stage is killed that has no file in it
STEPS = 4  # of training that are done by then: past the first checkpoint, in the middle of a rollout


def lay(name: str) -> None:
    """Have the process group of this stage die, Snakemake with it, while it trains or saves its data."""
    recipe, *_, stage = name.split("/")
    if recipe != "r1" or not KILLED.is_dir() or (KILLED / stage).exists():
        return

    def die(*_: object) -> None:
        (KILLED / stage).touch()
        os.killpg(0, signal.SIGKILL)

    samples.save = demonstrations.save = preferences.save = die
    plain = Resumable.training_step

    def step(self, *args, **kwargs):
        if self.state.global_step >= STEPS:  # or more, where it was killed together with another stage
            die()
        return plain(self, *args, **kwargs)

    Resumable.training_step = step
