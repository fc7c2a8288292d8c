"""What exactly was run: how the arms differ, on what, from which commit, and the commands to do it again."""

from collections.abc import Hashable, Mapping
from typing import Any

import pandas as pd

from analysis.numbers.means import DASH, duration
from analysis.numbers.run import Run
from analysis.numbers.settings import settings


def differences(run: Run) -> pd.DataFrame:
    """Every resolved setting in which an arm differs from the first, with both values."""
    base = dict(settings(run, run.arms[0]))
    rows = []
    for arm in run.arms[1:]:
        own = dict(settings(run, arm))
        for key in [*own, *(key for key in base if key not in own)]:
            if own.get(key) != base.get(key):
                there, here = (side.get(key, DASH) for side in (base, own))
                rows.append({"arm": arm, "setting": key, run.arms[0]: there, "here": here})
    return pd.DataFrame(rows, columns=["arm", "setting", run.arms[0], "here"])


def facts(provenance: pd.DataFrame) -> dict[str, list[str]]:
    """Commit, versions, hardware and how FLOPs are counted, with every distinct value among the stages."""
    rows = provenance.to_dict("records")
    commits = [_commit(row) for row in rows]
    counted = [f"{row['stage']}: {row['flops_formula']}" for row in rows if not pd.isna(row["flops_formula"])]
    return {
        "commit": _distinct(commits),
        "versions": _distinct([_pairs(row["versions"]) for row in rows]),
        "hardware": _distinct([_pairs(row["hardware"]) for row in rows]),
        "started": _distinct([str(row["started"]) for row in rows])[:1],
        "FLOPs": _distinct(counted),
    }


def _commit(row: Mapping[Hashable, Any]) -> str:
    if pd.isna(row["commit"]):
        return "unknown: not run from a git checkout"
    return f"{row['commit']} with uncommitted changes" if row["dirty"] else row["commit"]


def _distinct(values: list[str]) -> list[str]:
    return sorted(set(values))


def _pairs(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {entry}" for name, entry in value.items() if entry != [])
    return str(value)


def runs(provenance: pd.DataFrame) -> pd.DataFrame:
    """One row per stage that was run."""
    return pd.DataFrame(
        {
            "stage": provenance.stage,
            "arm": provenance.arm,
            "seed": provenance.seed,
            "started": provenance.started,
            "wall-clock": provenance.wall_s.map(duration),
            "steps": provenance.steps,
            "resumed": provenance.resumed,
            "commit": provenance.commit.astype(str).str[:10],
        }
    )


def commands(run: Run, report: str) -> str:
    """What to type to get this page again."""
    seeds = f"--config scale={run.scale} seeds={len(run.seeds)}"
    page = f"results/{run.name}/{run.scale}/{report}.html"
    return f"pip install -e .\nsnakemake --cores all {page} {seeds}"
