"""Base models: whether all seeds of a run start from the same one, and the results with other base models."""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from analysis.arms.uncertainty import shares_base
from analysis.numbers.means import number
from analysis.numbers.recorded import title
from analysis.numbers.run import Run

# a file beside the records: columns record, claim, base (the seed that pretrained it), seed, difference
OTHERS = "other_bases.csv"


def one_base(run: Run) -> str:
    """Return a sentence that says that all seeds share one base model; "" for one seed, or if they do not."""
    if len(run.seeds) < 2 or not shares_base(run):
        return ""
    return "All seeds share one base model, so the intervals say nothing of other base models."


def one_base_each(runs: Iterable[Run]) -> str:
    """Return a sentence that says in which of several runs all seeds share one base model; "" if in none.

    It names the runs with one base model or, if these are the majority, the other runs.
    """
    shared: list[str] = []
    varied: list[str] = []
    for run in runs:
        (shared if shares_base(run) else varied).append(title(f"{run.name}-{run.scale}"))
    if not shared:
        return ""
    which = "the" if len(shared) == 1 else "each"
    where = f"of {which} record of {', '.join(shared)}" if varied else "of a record"
    if varied and len(varied) < len(shared):
        where = f"of each record but {', '.join(varied)}"
    return f"All seeds {where} share one base model, so its intervals say nothing of other base models."


def others(folder: Path, records: Iterable[str]) -> str:
    """Return sentences on the results of these records' claims with other base models.

    `folder` has the records and the file OTHERS. The text is empty if no claim was tried with another base
    model.
    """
    if not (folder / OTHERS).exists():
        return ""
    rows = pd.read_csv(folder / OTHERS)
    rows = rows[rows.record.isin(list(records))]
    said = []
    for name, claim in rows[["record", "claim"]].drop_duplicates().itertuples(index=False):
        judged = pd.read_csv(folder / name / "claims.csv", index_col="id")
        ours, metric = float(judged["estimate"][claim]), str(judged["metric"][claim])
        means = (
            rows[(rows.record == name) & (rows.claim == claim)]
            .groupby("base")
            .difference.agg(["mean", "size"])
        )
        values = [number(value, metric) for value in means["mean"]]
        least, most = means["size"].min(), means["size"].max()
        said.append(
            f"{title(name)} on {len(values)} other base models gave {', '.join(values)} for "
            f"{number(ours, metric)} ({claim}; {least} to {most} seeds each)."
        )
    return " ".join(said)
