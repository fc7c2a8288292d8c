"""The policies that a report holds against each other by gold reward, and the replies they gave.

A policy that arms share is one contender, whichever of them had it evaluated. Evaluations ask every policy
the same items, and a seed's policy is held against the same seed's: comparisons are paired by both.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.numbers import tasks
from analysis.numbers.run import Run, read_lines
from analysis.numbers.table import measured
from evals.metrics import DIGITS
from recipes.spec.graph import Node


@dataclass(frozen=True)
class Contender:
    """A policy, by the first arm and checkpoint that have it."""

    name: str
    arm: str
    checkpoint: str
    last: bool  # its arm ends with it: the last checkpoint that is the arm's alone
    shared: bool  # by several arms, or the only one of its checkpoint
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


def judged_task(run: Run, table: pd.DataFrame) -> str:
    """The task that policies are compared on; empty where none has gold, nor reward and KL.

    The headline if it is one, else the first of the evaluations' with gold, or else with reward and KL.
    """
    there = set(table.metric[table.step.isna()])
    asked = [tasks.headline(run), *asked_tasks(run)]
    gold = (task for task in asked if f"{task}/gold" in there)
    return next(gold, None) or next((t for t in asked if {f"{t}/proxy", f"{t}/kl"} <= there), "")


def asked_tasks(run: Run) -> list[str]:
    """Every evaluation task of the run, once, in the recipe's order."""
    return list(
        dict.fromkeys(
            task for arm in run.arms for name in run.checkpoints(arm) for task in tasks.tasks(run, arm, name)
        )
    )


def contenders(run: Run, table: pd.DataFrame, task: str) -> list[Contender]:
    """Every distinct policy measured on the task, in the order of arms and their checkpoints."""
    by = f"{task}/{tasks.measure(table, task)}"
    having: dict[tuple, list[tuple[str, str]]] = {}  # a policy's models, one a seed -> where it is evaluated
    for arm in run.arms:
        for checkpoint in run.checkpoints(arm):
            if len(measured(table, f"{arm}/{checkpoint}", by)):
                models = tuple(model(run, arm, checkpoint, seed) for seed in run.seeds)
                having.setdefault(models, []).append((arm, checkpoint))
    own = {places[0] for places in having.values() if len({arm for arm, _ in places}) == 1}
    ends = {arm: [name for name in run.checkpoints(arm) if (arm, name) in own][-1:] for arm in run.arms}
    found = []
    for models, places in having.items():
        arm, checkpoint = places[0]
        made_by = models[0].name if isinstance(models[0], Node) else ""
        last = [checkpoint] == (ends[arm] or run.checkpoints(arm)[-1:])
        found.append(Contender(checkpoint, arm, checkpoint, last, places[0] not in own, made_by))
    return [_named(one, found, len(run.arms) > 1) for one in found]


def _named(one: Contender, among: Sequence[Contender], several: bool) -> Contender:
    """By its arm, if it is the end of one of several; else by its checkpoint, if no other has it."""
    if one.last and not one.shared:
        return replace(one, name=one.arm) if several else one
    alike = [other for other in among if other.checkpoint == one.checkpoint and not (other.last and several)]
    if one.shared:
        alike = [other for other in alike if other.shared]
    alone = len(alike) == 1
    return replace(one, name=one.checkpoint if alone else one.at, shared=one.shared or alone)


def model(run: Run, arm: str, checkpoint: str, seed: int) -> Node | str:
    """The stage whose model a checkpoint is, of the arm that owns it; of another model its place as text."""
    node = Node(run.name, run.scale, arm, seed, checkpoint, "eval")
    return run.graph.inputs(node).get("model") or str(run.graph.model_of(node))


def baseline(run: Run, among: Sequence[Contender]) -> Contender | None:
    """The reference policy of the evaluations; else checkpoint `sft`, else the first. None among none."""
    named = run.recipe.overlaid(run.scale, run.arms[0], "evals").get("models") or {}
    stage = str(named.get("reference") or "").partition("@")[0].rpartition("/")[2]
    by_stage = (contender for contender in among if stage and contender.stage == stage)
    by_name = (contender for contender in among if contender.checkpoint == "sft")
    return next(by_stage, None) or next(by_name, None) or next(iter(among), None)


def representatives(among: Sequence[Contender], most: int) -> list[Contender]:
    """At most `most`: what arms share, then an end of each stage, other ends, the rest; as ordered."""
    ends = [who for who in among if who.last and not who.shared]
    first_of = {who.stage: who for who in reversed(ends)}
    wanted = [who for who in among if who.shared] + [who for who in ends if first_of[who.stage] == who]
    chosen = list(dict.fromkeys([*wanted, *ends, *among]))[:most]
    return [who for who in among if who in chosen]


def in_arm(run: Run, who: Contender, arm: str) -> Contender:
    """The same policy as another arm had it evaluated, with that arm's proxy; itself where it was not."""
    own = model(run, who.arm, who.checkpoint, run.seeds[0])
    for checkpoint in run.checkpoints(arm):
        if model(run, arm, checkpoint, run.seeds[0]) == own:
            return replace(who, arm=arm, checkpoint=checkpoint)
    return who


def own_start(run: Run, who: Contender, start: Contender) -> Contender:
    """What the policy's arm has for `start`: where arms differ in size another model of the same stage."""
    for checkpoint in run.checkpoints(who.arm):
        made_by = model(run, who.arm, checkpoint, run.seeds[0])
        if isinstance(made_by, Node) and made_by.name == start.stage:
            return replace(start, arm=who.arm, checkpoint=checkpoint)
    return start


def proxies(run: Run, among: Sequence[Contender]) -> int:
    """How many different reward models judge these policies."""
    nodes = (Node(run.name, run.scale, w.arm, run.seeds[0], w.checkpoint, "eval") for w in among)
    return len({run.graph.inputs(node).get("proxy") for node in nodes} - {None})


Read = dict[Node, Replies | None]


def replies(run: Run, contender: Contender, task: str, read: Read) -> dict[int, Replies]:
    """By seed; without the seeds whose samples are not on disk or have no gold score. `read` is a cache."""
    found = {}
    for seed in run.seeds:
        asked = Node(run.name, run.scale, contender.arm, seed, contender.checkpoint, "eval")
        node = run.graph.owner(asked)
        if node not in read:
            read[node] = _read(run, node, task)
        if (one := read[node]) is not None:
            found[seed] = one
    return found


def _read(run: Run, node: Node, task: str) -> Replies | None:
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
