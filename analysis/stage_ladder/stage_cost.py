"""The cost of each step of the ladder: of its own stages, and of all stages that lead to it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.numbers.means import duration, power
from analysis.numbers.run import Run
from analysis.stage_ladder.steps import Step, made
from encore.recipe.graph import Node

AMOUNTS = ["wall_s", "tokens", "flops"]
COLUMNS = ["step", "stages", "seeds", *AMOUNTS, *(f"{name}_in_all" for name in AMOUNTS)]


def stage_cost(run: Run, ladder: Sequence[Step], jobs: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each step: the mean cost over seeds of its own stages, and of all (`…_in_all`).

    A stage that steps share is the own stage of the first of them only. `jobs` is the table of
    provenance.jobs; a seed that lacks a stage there is left out.
    """
    numeric = jobs.assign(**jobs[AMOUNTS].apply(pd.to_numeric, errors="coerce"))
    spent = {(row["arm"], row["seed"], row["stage"]): row for row in numeric.to_dict("records")}
    rows = []
    by_seed = {seed: made(run, ladder, seed) for seed in run.seeds}
    for step in ladder:
        own_costs, total = [], []
        for seed in run.seeds_of(step.arm):
            step_costs = by_seed[seed][step.name]
            of_own, of_all = _sum(run, step_costs.own, spent), _sum(run, step_costs.of, spent)
            if of_own and of_all:
                own_costs.append(of_own)
                total.append(of_all)
        if not own_costs:
            continue
        stages = ", ".join(run.label(node) for node in by_seed[run.seeds[0]][step.name].own)
        rows.append(
            {"step": step.name, "stages": stages, "seeds": len(own_costs)}
            | {name: _mean(own_costs, name) for name in AMOUNTS}
            | {f"{name}_in_all": _mean(total, name) for name in AMOUNTS}
        )
    return pd.DataFrame(rows, columns=COLUMNS)


def _sum(run: Run, nodes: Iterable[Node], spent: Mapping[Any, Mapping]) -> dict[str, float] | None:
    """Return each of AMOUNTS -> its sum over the stages `nodes`; None if `spent` lacks a stage."""
    records = [spent.get((node.arm, node.seed, run.label(node))) for node in nodes]
    if None in records:
        return None
    return {name: float(np.nansum([record[name] for record in records if record])) for name in AMOUNTS}


def _mean(sums: Sequence[Mapping[str, float]], name: str) -> float:
    return sum(entry[name] for entry in sums) / len(sums)


def stage_cost_shown(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "step": frame.step,
            "its own stages": frame.stages.where(frame.stages != "", "none"),
            "wall-clock": frame.wall_s.map(duration),
            "tokens": frame.tokens.map("{:,.0f}".format),
            "FLOPs (estimate)": frame.flops.map(power),
            "wall-clock in all": frame.wall_s_in_all.map(duration),
            "tokens in all": frame.tokens_in_all.map("{:,.0f}".format),
            "FLOPs in all": frame.flops_in_all.map(power),
        }
    )
