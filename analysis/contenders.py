"""The policies that a report holds against each other by gold reward, and the replies they gave.

A policy that arms share is one contender, whichever of them had it evaluated. Evaluations ask every policy
the same items, and a seed's policy is held against the same seed's: comparisons are paired by both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis import tables
from analysis.table import Run, measured, read_lines
from recipes import graph

DIGITS = 9  # decimals of a score that count: a formula's rounding is no preference


@dataclass(frozen=True)
class Contender:
    """`name` is the arm's where the policy is what the arm ends with, else the checkpoint's."""

    name: str
    arm: str
    checkpoint: str
    last: bool  # what its arm ends with
    shared: bool  # by several arms, or on the way of the only one
    stage: str  # the stage that made it; empty of a model from elsewhere

    @property
    def at(self) -> str:
        return f"{self.arm}/{self.checkpoint}"


@dataclass(frozen=True)
class Replies:
    """What one policy (one seed) said to the items of a task: arrays (items, samples) by score's name.

    Names: gold, tokens, and where the evaluation has them proxy and reference_gold, of the world's own reply.
    """

    items: tuple[int, ...]
    scores: dict[str, np.ndarray]


def gold_task(run: Run, table: pd.DataFrame) -> str:
    """The first task, the headline before others, that is measured by gold; empty where none is."""
    there = {metric.removesuffix("/gold") for metric in table.metric[table.step.isna()].unique()
             if metric.endswith("/gold") and metric.count("/") == 1}  # fmt: skip
    asked = [tables.headline(run)]
    asked += [
        task for arm in run.arms for name in run.checkpoints(arm) for task in tables.tasks(run, arm, name)
    ]
    return next((task for task in asked if task in there and not of_training(task)), "")


def of_training(task: str) -> bool:
    """Whether the name before `/gold` is a kind of training number (`peak/gold`) and no task."""
    return task in ("peak", "rise", "drop", "kl_at_peak")


def contenders(run: Run, table: pd.DataFrame, task: str) -> list[Contender]:
    """Every distinct policy with gold reward on the task, in the order of arms and their checkpoints."""
    having: dict[tuple, list[tuple[str, str]]] = {}  # a policy's models, one a seed -> where it is evaluated
    for arm in run.arms:
        for checkpoint in run.checkpoints(arm):
            if len(measured(table, f"{arm}/{checkpoint}", f"{task}/gold")):
                models = tuple(model(run, arm, checkpoint, seed) for seed in run.seeds)
                having.setdefault(models, []).append((arm, checkpoint))
    found = []
    for models, places in having.items():
        arm, checkpoint = places[0]
        made_by = models[0].name if isinstance(models[0], graph.Node) else ""
        last = checkpoint == run.checkpoints(arm)[-1]
        shared = len({arm for arm, _ in places}) > 1 or (len(run.arms) == 1 and not last)
        name = arm if last else checkpoint
        found.append(Contender(name, arm, checkpoint, last, shared, made_by))
    names = [one.name for one in found]
    return [one if names.count(one.name) == 1 else replace(one, name=one.at) for one in found]


def model(run: Run, arm: str, checkpoint: str, seed: int) -> graph.Node | str:
    """The stage whose model a checkpoint is, of the arm that owns it; of another model its place as text."""
    node = graph.Node(run.name, run.scale, arm, seed, checkpoint, "eval")
    return graph.inputs(run.recipes, node).get("model") or str(graph.model_of(run.recipes, node))


def baseline(run: Run, among: Sequence[Contender]) -> Contender | None:
    """The reference policy of the evaluations; else checkpoint `sft`, else the first. None among none."""
    named = graph.overlaid(run.recipe, run.scale, run.arms[0], "evals").get("models") or {}
    stage = str(named.get("reference") or "").partition("@")[0].rpartition("/")[2]
    by_stage = (contender for contender in among if stage and contender.stage == stage)
    by_name = (contender for contender in among if contender.checkpoint == "sft")
    return next(by_stage, None) or next(by_name, None) or next(iter(among), None)


def replies(run: Run, contender: Contender, task: str) -> dict[int, Replies]:
    """By seed; without the seeds whose samples are not on disk or have no gold score."""
    read: dict[graph.Node, Replies | None] = {}
    found = {}
    for seed in run.seeds:
        asked = graph.Node(run.name, run.scale, contender.arm, seed, contender.checkpoint, "eval")
        node = graph.owner(run.recipes, asked)
        if node not in read:
            read[node] = _read(run, node, task)
        if (one := read[node]) is not None:
            found[seed] = one
    return found


def _read(run: Run, node: graph.Node, task: str) -> Replies | None:
    rows = [
        row
        for row in read_lines(run.folder(node) / f"{node.name}.samples.jsonl")
        if row["task"] == task and row.get("gold")
    ]
    if not rows:
        return None
    names = ["gold", "tokens"] + (["proxy"] if all(row.get("proxy") for row in rows) else [])
    scores = {name: np.round(np.array([row[name] for row in rows], dtype=float), DIGITS) for name in names}
    if all(row.get("reference_gold") is not None for row in rows):
        rival = np.array([[row["reference_gold"]] for row in rows], dtype=float)  # (items, 1)
        scores["reference_gold"] = np.round(rival, DIGITS)
    return Replies(tuple(row["item"] for row in rows), scores)


def paired(one: Replies, other: Replies, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Both sides' scores (items, samples), of the items that both were asked."""
    shared = sorted(set(one.items) & set(other.items))
    sides = []
    for side in (one, other):
        place = {item: index for index, item in enumerate(side.items)}
        sides.append(side.scores[name][[place[item] for item in shared]])
    return sides[0], sides[1]
