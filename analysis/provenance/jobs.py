"""The jobs that trained: when, where, from which code, and what each took."""

import pandas as pd

from analysis.numbers.run import Run, read_json

COLUMNS = ["arm", "seed", "stage", "commit", "dirty", "versions", "hardware", "started", "wall_s"]
COLUMNS += ["resumed", "tokens", "tokens_per_s", "flops", "flops_formula", "steps"]


def jobs(run: Run) -> pd.DataFrame:
    """One row per stage that was trained: arm, seed, stage and the fields of its provenance.json."""
    rows = []
    for node in run.all_nodes():
        record = read_json(run.folder(node) / "provenance.json") if node.kind == "stage" else None
        if record:
            rows.append({"arm": node.arm, "seed": node.seed, "stage": run.label(node)} | record)
    return pd.DataFrame(rows, columns=COLUMNS)
