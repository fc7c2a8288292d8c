"""The jobs that trained: when, where, from which code, and what each took."""

import pandas as pd

from analysis.numbers.run import Run, read_json
from recipes.planning import plan

COLUMNS = ["arm", "seed", "stage", "commit", "dirty", "versions", "hardware", "started", "wall_s"]
COLUMNS += ["resumed", "tokens", "tokens_per_s", "flops", "flops_formula", "steps", "planned_s"]


def jobs(run: Run) -> pd.DataFrame:
    """One row per stage that was trained: arm, seed, stage, the fields of its provenance.json, and what the
    planner says of its seconds on the GPU that it ran on."""
    rows = []
    for node in run.all_nodes():
        record = read_json(run.folder(node) / "provenance.json") if node.kind == "stage" else None
        if record:
            names = {"arm": node.arm, "seed": node.seed, "stage": run.label(node)}
            on = " ".join(map(str, record["hardware"].get("gpus", [])))
            rows.append(names | record | {"planned_s": plan.seconds(run.graph, node, on)})
    return pd.DataFrame(rows, columns=COLUMNS)
