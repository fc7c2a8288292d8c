"""The final numbers of a published record, as the table of numbers.table has them.

A record keeps a number that arms or seeds share once, under the first of them (analysis.publish). Here each
of them has it again, by what the recipe says they share. What is read off frontiers is no part of a record:
it follows from the rest, by the recipe as it is now.
"""

import math
from dataclasses import replace
from pathlib import Path

import pandas as pd

from analysis.numbers.run import Run
from analysis.numbers.table import COLUMNS, with_frontiers
from recipes.spec.graph import Graph, Node
from recipes.spec.metric_names import task_of

KEY = ["arm", "seed", "node"]


def of_record(folder: Path, graph: Graph) -> tuple[Run, pd.DataFrame]:
    """The run of a record, of the seeds that are judged, and its final numbers, those of other seeds too."""
    name, _, scale = folder.name.rpartition("-")
    recipe, kept = graph.recipes[name], pd.read_csv(folder / "numbers.csv", low_memory=False)
    seeds = tuple(int(seed) for seed in sorted(kept.seed.unique()))
    run = Run(graph, name, scale, tuple(recipe.arms(scale)), seeds)
    judged = replace(run, seeds=tuple(seed for seed in seeds if seed not in recipe.dial_seeds))
    return judged, recorded(run, kept)


def recorded(run: Run, kept: pd.DataFrame) -> pd.DataFrame:
    """The final numbers of the run's arms and seeds, from `kept`, the record's numbers.csv."""
    by_place = dict(list(kept.groupby(KEY)))
    first: dict[str, pd.DataFrame] = {}  # artefact -> its numbers, as the first place that has it
    parts = []
    for arm in run.arms:
        for seed in run.seeds:
            for node in run.nodes(arm, seed):
                place = (arm, seed, run.label(node))
                if node.sentinel not in first and place in by_place:
                    own = _of(run, node, by_place[place])
                    first[node.sentinel] = own.assign(source=node.sentinel, step=math.nan)
                if node.sentinel in first:
                    parts.append(first[node.sentinel].assign(arm=arm, seed=seed))
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)
    return with_frontiers(run.spec, table[COLUMNS])


def _of(run: Run, node: Node, rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of a stage, or of an evaluation, among those of a place; one name may be both."""
    task = rows.metric.map(task_of)
    if node.kind == "eval":
        return rows[task.isin(run.graph.config(node)["tasks"])]
    evaluated = run.graph.recipes[node.recipe].overlaid(run.scale, node.arm, "evals").get("tasks", {})
    return rows[~task.isin(evaluated)]
