"""The policies that a report compares with each other.

A policy that several arms share is one contender, whichever of them had it evaluated.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from analysis.numbers import tasks
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from encore.recipe.graph import Node


@dataclass(frozen=True)
class Contender:
    """A policy, by the first arm and checkpoint that have it."""

    name: str
    arm: str
    checkpoint: str
    last: bool  # the last of its arm's checkpoints that no other arm shares
    shared: bool  # by several arms, or the only one of its checkpoint
    stage: str  # the stage that made it; empty of a model from elsewhere

    @property
    def at(self) -> str:
        return f"{self.arm}/{self.checkpoint}"


def judged_task(run: Run, table: pd.DataFrame) -> str:
    """The task that policies are compared on: the first with gold, else the first with reward and KL.

    The headline task comes first, then the others in the recipe's order. Empty where no task has either.
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
    having: dict[tuple, list[tuple[str, str]]] = {}  # models, one a seed -> (arm, checkpoint)s that are them
    for arm in run.arms:
        for checkpoint in run.checkpoints(arm):
            if len(measured(table, f"{arm}/{checkpoint}", by)):
                models = tuple(model(run, arm, checkpoint, seed) for seed in run.seeds)
                having.setdefault(models, []).append((arm, checkpoint))
    own = {places[0] for places in having.values() if len({arm for arm, _ in places}) == 1}
    ends = {arm: [name for name in run.checkpoints(arm) if (arm, name) in own][-1:] for arm in run.arms}
    policies = []
    for models, places in having.items():
        arm, checkpoint = places[0]
        made_by = models[0].name if isinstance(models[0], Node) else ""
        last = [checkpoint] == (ends[arm] or run.checkpoints(arm)[-1:])
        policies.append(Contender(checkpoint, arm, checkpoint, last, places[0] not in own, made_by))
    return [_named(one, policies, len(run.arms) > 1) for one in policies]


def _named(one: Contender, among: Sequence[Contender], several: bool) -> Contender:
    """Named by its arm if it is the last of one of several; else by its checkpoint if that is unique."""
    if one.last and not one.shared:
        return replace(one, name=one.arm) if several else one
    alike = [other for other in among if other.checkpoint == one.checkpoint and not (other.last and several)]
    if one.shared:
        alike = [other for other in alike if other.shared]
    alone = len(alike) == 1
    return replace(one, name=one.checkpoint if alone else one.at, shared=one.shared or alone)


def model(run: Run, arm: str, checkpoint: str, seed: int) -> Node | str:
    """The stage that made a checkpoint's model, as its owner has it; of a model from elsewhere its name."""
    node = run.evaluation(arm, checkpoint, seed)
    return run.graph.inputs(node).get("model") or str(run.graph.model_of(node))


def baseline(run: Run, among: Sequence[Contender]) -> Contender | None:
    """The evaluations' reference policy; else checkpoint `sft`, else the first contender, if there is any."""
    named = run.recipe.evals(run.scale, run.arms[0]).models.reference
    stage = (named or "").partition("@")[0].rpartition("/")[2]
    by_stage = (contender for contender in among if stage and contender.stage == stage)
    by_name = (contender for contender in among if contender.checkpoint == "sft")
    return next(by_stage, None) or next(by_name, None) or next(iter(among), None)


def representatives(among: Sequence[Contender], most: int) -> list[Contender]:
    """At most `most` of them, in their order.

    Those that arms share are chosen first, then one arm's end for each stage that made one, then the other
    ends, then the rest.
    """
    shared = [one for one in among if one.shared]
    ends = [one for one in among if one.last and not one.shared]
    first_of = {one.stage: one for one in reversed(ends)}
    wanted = [*shared, *(one for one in ends if first_of[one.stage] == one)]
    chosen = list(dict.fromkeys([*wanted, *ends, *among]))[:most]
    return [one for one in among if one in chosen]


def in_arm(run: Run, contender: Contender, arm: str) -> Contender:
    """The policy as another arm evaluated it, so with that arm's proxy; itself where that arm did not."""
    own = model(run, contender.arm, contender.checkpoint, run.seeds[0])
    for checkpoint in run.checkpoints(arm):
        if model(run, arm, checkpoint, run.seeds[0]) == own:
            return replace(contender, arm=arm, checkpoint=checkpoint)
    return contender


def own_start(run: Run, contender: Contender, start: Contender) -> Contender:
    """The policy's own arm's counterpart of `start`: arms of other sizes start from other models."""
    for checkpoint in run.checkpoints(contender.arm):
        made_by = model(run, contender.arm, checkpoint, run.seeds[0])
        if isinstance(made_by, Node) and made_by.name == start.stage:
            return replace(start, arm=contender.arm, checkpoint=checkpoint)
    return start


def proxies(run: Run, among: Sequence[Contender]) -> int:
    """How many different reward models judge these policies."""
    nodes = (run.evaluation(one.arm, one.checkpoint) for one in among)
    return len({run.graph.inputs(node).get("proxy") for node in nodes} - {None})
