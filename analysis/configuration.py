"""What exactly was run: how the arms differ, on what, from which commit, and the commands to do it again."""

import json
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

import pandas as pd

from analysis.means import DASH
from analysis.table import Run
from analysis.tables import duration
from recipes.spec.graph import Node


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


def sweeps(run: Run) -> dict[str, list[str]]:
    """Setting of a stage -> the arms whose stages differ in this number alone, in its order.

    `key (2)` where there are several. Where a stage of the recipe itself is needed, its own settings say what
    differs, not who owns it.
    """
    by_arm = {}
    for arm in run.arms:
        own = {key: value.partition("@")[0] if ".needs." in key and "/" not in value else value
               for key, value in of_stages(run, arm)}  # fmt: skip
        by_arm[arm] = own
    keys = dict.fromkeys(key for own in by_arm.values() for key in own)
    found: dict[str, list[str]] = {}
    for key in keys:
        if len({own.get(key) for own in by_arm.values()}) < 2:
            continue
        alike: dict[str, list[tuple[float, str]]] = {}
        for arm, own in by_arm.items():
            if (value := _number(own.get(key))) is not None:
                rest = json.dumps([pair for pair in sorted(own.items()) if pair[0] != key])
                alike.setdefault(rest, []).append((value, arm))
        for group in (group for group in alike.values() if len(group) > 1):
            name = key if key not in found else f"{key} ({sum(k.startswith(key) for k in found) + 1})"
            found[name] = [arm for _, arm in sorted(group)]
    return found


def _number(text: str | None) -> float | None:
    """The number a setting is; None of any other."""
    try:
        value = json.loads(text or "null")
    except ValueError:
        return None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def settings(run: Run, arm: str) -> Iterator[tuple[str, str]]:
    """Every resolved setting of the arm's own stages and evaluations, and what they need, as text."""
    yield from of_stages(run, arm)
    for name in run.checkpoints(arm):
        node = Node(run.name, run.scale, arm, run.seeds[0], name, "eval")
        yield from _flat(name, run.graph.config(node))


def of_stages(run: Run, arm: str) -> Iterator[tuple[str, str]]:
    """Those of the stages, and what they need."""
    for name in run.recipe.stages(run.scale, arm):
        node = Node(run.name, run.scale, arm, run.seeds[0], name, "stage")
        yield from _flat(name, run.graph.config(node))
        for role, source in run.graph.inputs(node).items():
            yield f"{name}.needs.{role}", f"{run.label(source)}@{source.arm}"


def _flat(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _flat(f"{key}.{name}", below)
    else:
        yield key, value if isinstance(value, str) else json.dumps(value)


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
