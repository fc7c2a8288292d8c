"""What the runs of a published record say of it."""

from pathlib import Path

import pandas as pd


def bases(record: Path) -> int:
    """Return how many base models the seeds of a record's arm have, of the arm that has the most.

    A record without pretraining trains a published model, which is one; a bandit has a table, and no model.
    """
    runs = pd.read_csv(record / "runs.csv.xz")
    if (runs.stage == "bandit").all():
        return 0
    pretrained = runs[runs.stage.str.endswith("pretrain")]
    return int(pretrained.groupby("arm").seed.nunique().max()) if len(pretrained) else 1
