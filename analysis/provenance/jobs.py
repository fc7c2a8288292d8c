"""The table of training jobs: when and where each ran, from which code, and its time, tokens and FLOPs."""

import json
from pathlib import Path

import pandas as pd

from analysis.numbers import recorded
from analysis.numbers.run import Run, read_json
from encore.errors import UserError

COLUMNS = ["arm", "seed", "stage", "commit", "dirty", "versions", "hardware", "started", "wall_s", "cpu_s"]
COLUMNS += ["resumed", "tokens", "tokens_per_s", "flops", "flops_formula", "steps"]


NESTED = ("versions", "hardware")  # columns whose values are objects


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write the table of jobs as compressed CSV, with the columns NESTED as JSON."""
    texts = {name: [json.dumps(value, sort_keys=True) for value in frame[name]] for name in NESTED}
    frame.assign(**texts).to_csv(path, index=False)


def _read_jobs(path: Path) -> pd.DataFrame:
    """Return the table of jobs from a file of write(); no rows if the file is missing."""
    if not path.exists():
        return pd.DataFrame(columns=COLUMNS)
    frame = pd.read_csv(path)
    return frame.assign(**{name: [json.loads(text) for text in frame[name]] for name in NESTED})


def jobs(run: Run) -> pd.DataFrame:
    """Return a row for each trained stage: arm, seed, stage and the fields of its provenance.json."""
    if run.record:
        return _read_jobs(run.record / recorded.RUNS)
    rows = []
    for node in run.all_nodes():
        record = read_json(run.folder(node) / "provenance.json") if node.kind == "stage" else None
        if record:
            rows.append({"arm": node.arm, "seed": node.seed, "stage": run.label(node)} | record)
    return pd.DataFrame(rows, columns=COLUMNS)


def committed(run: Run) -> pd.DataFrame:
    """Return the table of jobs(). Raises UserError if a stage was trained by code that no commit has."""
    runs = jobs(run)
    unnamed = runs[runs.commit.isna() | runs.dirty.astype(bool)]
    if len(unnamed):
        first = unnamed.iloc[0]
        how = "outside git" if pd.isna(first.commit) else f"from files that differ from {first.commit[:12]}"
        where = f"{first.arm}/seed{first.seed}/{first.stage}"
        raise UserError(f"{where}: trained {how}; a record must name the code that made it")
    return runs
