"""The one tidy table that every number, table and figure of a report is computed from.

One row is one number: [recipe, scale, arm, seed, node, step, metric, value, low, high, source].

- `node` is a stage (`grpo`), a checkpoint (`after`), or `recipe/stage` for a stage of another recipe.
- `step` is the training step of a learning curve, and missing for a final number.
- `low`, `high` are an evaluation's own 95% interval (over items and samples), else missing.
- `updates_to/…` and `samples_to/…` are read off the curve (analysis.reach), at the levels that claims name;
  so are `peak/gold` and its like (analysis.peaks).
- `<task>/variance/items` and `/sampling` are the two parts of the variance of that checkpoint's accuracy.
- `source` is the artefact the number was read from: the sentinel of the node's owner. An arm that uses the
  base arm's checkpoint has rows of its own that name the base arm's artefact.

The nodes come from recipes.graph, never from what happens to lie on disk; an absent artefact has no rows.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis import peaks, reach
from recipes.errors import UserError
from recipes.spec.graph import Graph, Node
from recipes.spec.recipe import Recipe

COLUMNS = [
    "recipe",
    "scale",
    "arm",
    "seed",
    "node",
    "step",
    "metric",
    "value",
    "low",
    "high",
    "source",
]
NUMBERS = ["step", "value", "low", "high"]
MEASURED = ["seed", "value", "low", "high", "source"]


@dataclass(frozen=True)
class Run:
    """What a report is about: a recipe at a scale, its arms and seeds, and where the artefacts lie."""

    graph: Graph
    name: str
    scale: str
    arms: tuple[str, ...]
    seeds: tuple[int, ...]
    root: Path = Path(".")

    @property
    def recipe(self) -> Recipe:
        return self.graph.recipes[self.name]

    @property
    def spec(self) -> dict[str, Any]:
        return self.recipe.spec

    def nodes(self, arm: str, seed: int) -> list[Node]:
        """The owners of everything that one arm and seed stands on, upstream first.

        Where it leans on another arm's stage and has a stage of that name itself, it is the arm's own alone.
        """
        found = self.graph.grid(self.name, self.scale, [arm], [seed])
        stages = self.recipe.stages(self.scale, arm)
        places = [Node(self.name, self.scale, arm, seed, name, "stage") for name in stages]
        own = {self.graph.owner(place) for place in places}
        taken = {self.label(node) for node in own}
        return [n for n in found if n.kind == "eval" or n in own or self.label(n) not in taken]

    def all_nodes(self) -> list[Node]:
        """Every distinct node of the run, upstream first: what was really computed."""
        return self.graph.grid(self.name, self.scale, list(self.arms), list(self.seeds))

    def label(self, node: Node) -> str:
        return node.name if node.recipe == self.name else f"{node.recipe}/{node.name}"

    def folder(self, node: Node) -> Path:
        return self.root / node.folder

    def sentinel(self, node: Node) -> Path:
        return self.root / node.sentinel

    def checkpoints(self, arm: str) -> list[str]:
        """The evaluated checkpoints of an arm: the first named stands for before, the last for after."""
        return self.recipe.checkpoints(self.scale, arm)

    @property
    def ends(self) -> list[str]:
        """The checkpoints before and after, by the first arm: fewer than two where fewer are evaluated."""
        names = self.checkpoints(self.arms[0])
        return names[:1] + names[1:][-1:]


def read_json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None where there is no file; UserError where it is not JSON."""
    try:
        return json.loads(path.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return None
    except json.JSONDecodeError as error:
        raise UserError(f"{path}: not valid JSON ({error.msg}); delete it and run again") from None


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a JSONL file; nothing where there is no file; a row cut short ends it."""
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            try:
                yield json.loads(line)
            except json.JSONDecodeError:
                return


def collect(run: Run) -> pd.DataFrame:
    """The tidy table of a run."""
    claims = run.spec.get("claims", [])
    cache: dict[Node, pd.DataFrame] = {}
    parts = []
    for arm in run.arms:
        for seed in run.seeds:
            for node in run.nodes(arm, seed):
                if node not in cache:
                    cache[node] = _numbers(run, node, claims)
                if len(cache[node]):
                    parts.append(cache[node].assign(recipe=run.name, scale=run.scale, arm=arm, seed=seed))
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=COLUMNS)
    return table[COLUMNS].astype(dict.fromkeys(NUMBERS, float))


def _numbers(run: Run, node: Node, claims: list[dict[str, Any]]) -> pd.DataFrame:
    """Columns node to source of one artefact; empty where there is none."""
    found = read_json(run.sentinel(node))
    if found is None:
        return pd.DataFrame()
    curve = pd.DataFrame(columns=["step", "metric", "value"])
    if node.kind == "eval":
        rows = [{"metric": name} | number for name, number in _evaluated(found["tasks"])]
    else:
        metrics = found.get("metrics", {})
        path = run.folder(node) / "curve.csv"
        if path.exists():
            curve = pd.read_csv(path)
            own = claims if node.recipe == run.name else []
            metrics = metrics | reach.reached(curve, reach.levels(own))
            metrics = metrics | peaks.peaks(curve, found.get("kind") == "ppo", peaks.levels(own))
        rows = [{"metric": metric, "value": value} for metric, value in metrics.items()]
    final = pd.DataFrame(rows, columns=["step", "metric", "value", "low", "high"])
    numbers = [frame.reindex(columns=final.columns) for frame in (final, curve) if len(frame)]
    typed = [frame.astype(dict.fromkeys(NUMBERS, float)) for frame in numbers]
    joined = pd.concat(typed, ignore_index=True) if typed else final
    return joined.assign(node=run.label(node), source=node.sentinel)


def _evaluated(tasks: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Metric and its number with interval, of every task of an evaluation."""
    for task, measured in tasks.items():
        for metric, number in measured["metrics"].items():
            yield f"{task}/{metric}", number
        for part, value in measured.get("variance", {}).items():
            yield f"{task}/variance/{part}", {"value": value}


def final(table: pd.DataFrame) -> pd.DataFrame:
    """The rows that are no learning curve: a small part of the table, all that verdicts and tables need."""
    return table[table.step.isna()]


def measured(table: pd.DataFrame, at: str, metric: str) -> pd.DataFrame:
    """The final numbers of `metric` at `arm/node`: columns value, low, high, source; indexed by seed."""
    arm, _, node = at.partition("/")
    rows = table.loc[table.metric == metric, ["arm", "node", "step", *MEASURED]]  # few are left to compare
    rows = rows.loc[(rows.arm == arm) & (rows.node == node) & rows.step.isna(), MEASURED]
    return rows.set_index("seed").sort_index()


def curves(table: pd.DataFrame, metrics: Iterable[str]) -> pd.DataFrame:
    """The learning-curve rows of these metrics."""
    return table[table.step.notna() & table.metric.isin(list(metrics))]


def health(run: Run) -> pd.DataFrame:
    """Every health check of every node: arm, seed, stage, check, ok, value, limit, severity, message."""
    rows = []
    for node in run.all_nodes():
        where = {"arm": node.arm, "seed": node.seed, "stage": run.label(node)}
        for check in (read_json(run.sentinel(node)) or {}).get("health", []):
            rows.append(where | check)
    columns = ["arm", "seed", "stage", "check", "ok", "value", "limit", "severity", "message"]
    return pd.DataFrame(rows, columns=columns)


def provenance(run: Run) -> pd.DataFrame:
    """One row per node that was computed: arm, seed, stage and the fields of its provenance.json."""
    rows = []
    for node in run.all_nodes():
        found = read_json(run.folder(node) / "provenance.json") if node.kind == "stage" else None
        if found:
            rows.append({"arm": node.arm, "seed": node.seed, "stage": run.label(node)} | found)
    columns = ["arm", "seed", "stage", "commit", "dirty", "versions", "hardware", "started", "wall_s"]
    columns += ["resumed", "tokens", "tokens_per_s", "flops", "flops_formula", "steps"]
    return pd.DataFrame(rows, columns=columns)
