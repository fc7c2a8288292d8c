"""The numbers of a published record, in the form of numbers.table.

If arms or seeds share a number, a record stores it once, under the first of them (analysis.publish). Here
each of them gets the number again. The recipe says which arms share it; the record says which seeds do,
because the recipe may have changed since. Numbers read off frontiers are not stored in a record: they are
computed from the other numbers, by the present recipe.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd

from analysis.numbers.run import Run
from analysis.numbers.table import COLUMNS, binned, with_frontiers
from encore.recipe.graph import Graph, Node
from encore.recipe.metric_names import task_of
from encore.recipe.shared import Shared

KEY = ["arm", "seed", "node"]
POINTS = 25  # largest number of points of a curve in a record
SIGNIFICANT = 6  # significant digits of a number in a record
DIGITS = 4  # significant digits of a point of a curve
DECIMALS = 4  # decimals of the ends of an interval
FRESH = 100  # smallest first_seed of a recipe that tests its claims again in another world
PACKAGES = "packages.txt"  # file with a list of all installed packages
NUMBERS = "numbers.csv.xz"  # columns arm, seed, node, metric, value, low, high
CURVES = "curves.csv.xz"  # columns arm, seed, node, step, and a column for each metric
RUNS = "runs.csv.xz"  # the table of jobs


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write a table as CSV with SIGNIFICANT digits, compressed as the end of `path` says.

    The same numbers give the same bytes.
    """
    frame.to_csv(path, index=False, float_format=f"%.{SIGNIFICANT}g")


def folders(published: Path) -> list[Path]:
    """Return the folders of the records in `published`, sorted by name."""
    return sorted(path.parent for path in published.glob("*/claims.csv"))


def title(record: str) -> str:
    """Return the name of a record for sentences, without `-cpu`: `r1_zero` for r1_zero-cpu."""
    return record.removesuffix("-cpu")


def of_earlier_world(folder: Path, graph: Graph) -> bool:
    """Return whether a record is of an earlier world: its recipe now judges other seeds, from FRESH on."""
    first = graph.recipes[folder.name.rpartition("-")[0]].first_seed
    seeds = pd.read_csv(folder / NUMBERS, usecols=["seed"]).seed
    return first >= FRESH and bool((seeds < first).all())


def current(published: Path, graph: Graph) -> list[Path]:
    """Return the folders of the records in `published`, without records of an earlier world."""
    return [folder for folder in folders(published) if not of_earlier_world(folder, graph)]


def of_record(folder: Path, graph: Graph) -> tuple[Run, pd.DataFrame]:
    """Return the run of a record, with its judged seeds only, and its final numbers of all seeds."""
    run, kept = read_record(folder, graph)
    return judged(run), recorded(run, kept)


def read_record(folder: Path, graph: Graph) -> tuple[Run, pd.DataFrame]:
    """Return the run of a record, with all of its seeds, and the content of its file NUMBERS."""
    name, _, scale = folder.name.rpartition("-")
    kept = pd.read_csv(folder / NUMBERS, low_memory=False)
    seeds = tuple(int(seed) for seed in sorted(kept.seed.unique()))
    return Run(as_run(folder, graph, kept), name, scale, tuple(graph.recipes[name].arms(scale)), seeds), kept


def as_run(folder: Path, graph: Graph, numbers: pd.DataFrame) -> Graph:
    """Return the graph of a record, in which seeds share each stage that was run for a single seed only.

    `numbers` has the columns KEY of the record's file NUMBERS. If seeds share a stage, they also share the
    held-out problems, as they once did in every such run, unless a shared model was evaluated with several
    seeds.
    """
    name, _, scale = folder.name.rpartition("-")
    runs = pd.read_csv(folder / RUNS, usecols=["seed", "stage"])
    trained = {str(label): rows.unique() for label, rows in runs.groupby("stage").seed}
    stages = {
        (label.rpartition("/")[0] or name, label.rpartition("/")[2]): int(seeds[0])
        for label, seeds in trained.items()
        if len(seeds) == 1 < runs.seed.nunique()
    }
    alike = Graph(graph.recipes, Shared(stages, problems=True))
    seeds_of = numbers.groupby(["arm", "node"]).seed.nunique()
    measured = [seeds_of.get(place, 0) for place in _measured_once(alike, name, scale)]
    once = bool(stages) and max(measured, default=1) <= 1
    return alike if once else Graph(graph.recipes, Shared(stages, problems=False))


def _measured_once(graph: Graph, name: str, scale: str) -> Iterator[tuple[str, str]]:
    """Yield (arm, checkpoint) of the evaluations that all seeds share in `graph`; the arm is the owner's."""
    recipe = graph.recipes[name]
    for arm in recipe.arms(scale):
        for checkpoint in recipe.evaluations(scale, arm):
            nodes = (Node(name, scale, arm, seed, checkpoint, "eval") for seed in (0, 1))
            first, second = map(graph.owner, nodes)
            if first == second:
                yield first.arm, first.name


def judged(run: Run) -> Run:
    """Return the run with its judged seeds only."""
    return replace(run, seeds=tuple(seed for seed in run.seeds if seed not in run.recipe.dial_seeds))


def with_curves(folder: Path, graph: Graph) -> tuple[Run, pd.DataFrame]:
    """Return the run of a record with its judged seeds, and its tidy table with numbers and learning curves.

    No artefact is read.
    """
    run, kept = read_record(folder, graph)
    if (folder / CURVES).exists():
        wide = pd.read_csv(folder / CURVES)
        curves = wide.melt([*KEY, "step"], var_name="metric").dropna(subset=["value"])
        kept = pd.concat([kept, curves], ignore_index=True)
    # read with all seeds, because shared numbers may stand under a seed that is not judged
    table, run = recorded(run, kept), judged(run)
    return replace(run, record=folder), table[table.seed.isin(run.seeds)]


def thinned(table: pd.DataFrame, metrics: Iterable[str]) -> pd.DataFrame:
    """Return the curves of these metrics in the form of CURVES, each averaged to at most POINTS steps.

    A curve that arms or seeds share is stored once, under the first of them.
    """
    rows = table[table.step.notna() & table.metric.isin(list(metrics))].dropna(subset=["value"])
    rows = rows[rows.groupby(["source", "metric"]).arm.transform("first") == rows.arm]
    rows = rows[rows.groupby(["source", "metric"]).seed.transform("first") == rows.seed]
    parts = []
    for (arm, node, metric), curve in rows.groupby(["arm", "node", "metric"], sort=False):
        by_step = binned(curve, POINTS).rename_axis("step")
        long = by_step.melt(ignore_index=False, var_name="seed").reset_index()
        parts.append(long.assign(arm=str(arm), node=str(node), metric=str(metric)))
    if not parts:
        return pd.DataFrame()
    every = pd.concat(parts).dropna(subset=["value"])
    every["value"] = [float(f"{value:.{DIGITS}g}") for value in every.value]
    every["step"] = every.step.round(2)
    wide = every.pivot(index=[*KEY, "step"], columns="metric", values="value")
    return wide.reset_index()


def recorded(run: Run, kept: pd.DataFrame) -> pd.DataFrame:
    """Return the tidy table of a run from `kept`, the numbers (and curves) that its record stores."""
    every = kept if "step" in kept else kept.assign(step=math.nan)
    by_place = dict(list(every.groupby(KEY)))
    first: dict[str, pd.DataFrame] = {}  # artefact -> its numbers, from the first place with this artefact
    parts = []
    for arm in run.arms:
        for seed in run.seeds:
            for node in run.nodes(arm, seed):
                place = (arm, seed, run.label(node))
                if node.sentinel not in first and place in by_place:
                    rows = _of(run, node, by_place[place])
                    first[node.sentinel] = rows.assign(source=node.sentinel)
                if node.sentinel in first:
                    parts.append(
                        first[node.sentinel].assign(recipe=run.name, scale=run.scale, arm=arm, seed=seed)
                    )
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)
    return with_frontiers(run.document, table[COLUMNS])


def _of(run: Run, node: Node, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `node` among the rows of a place; a stage and an evaluation may share the place."""
    task = rows.metric.map(task_of)
    if node.kind == "eval":
        return rows[task.isin(run.graph.evaluation(node).tasks)]
    return rows[~task.isin(run.graph.recipes[node.recipe].evals(run.scale, node.arm).tasks)]
