"""The contenders: the policies that a report compares with each other.

A policy that several arms share is a single contender.
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
    """A policy, with the first arm and checkpoint that have it."""

    name: str
    arm: str
    checkpoint: str
    last: bool  # whether it is the last of its arm's policies that no other arm shares
    shared: bool  # whether several arms share it, or no other contender has a checkpoint of this name
    stage: str  # the stage that made it; "" for a model from outside

    @property
    def at(self) -> str:
        return f"{self.arm}/{self.checkpoint}"


def judged_task(run: Run, table: pd.DataFrame) -> str:
    """Return the task on which policies are compared: the first with gold, else the first with proxy and KL.

    The headline task is tried first, then the other tasks in the recipe's order. The result is "" if no task
    has these metrics.
    """
    metrics = set(table.metric[table.step.isna()])
    asked = [tasks.headline(run), *asked_tasks(run)]
    gold = (task for task in asked if f"{task}/gold" in metrics)
    return next(gold, None) or next((t for t in asked if {f"{t}/proxy", f"{t}/kl"} <= metrics), "")


def asked_tasks(run: Run) -> list[str]:
    """Return every evaluation task of the run, once, in the recipe's order."""
    return list(
        dict.fromkeys(
            task for arm in run.arms for name in run.checkpoints(arm) for task in tasks.tasks(run, arm, name)
        )
    )


def contenders(run: Run, table: pd.DataFrame, task: str) -> list[Contender]:
    """Return every distinct policy measured on the task, in the order of the arms and their checkpoints."""
    by = f"{task}/{tasks.measure(table, task)}"
    having: dict[
        tuple, list[tuple[str, str]]
    ] = {}  # the models, one for each seed -> every (arm, checkpoint) that has these models
    for arm in run.arms:
        for checkpoint in run.checkpoints(arm):
            if len(measured(table, f"{arm}/{checkpoint}", by)):
                models = tuple(model(run, arm, checkpoint, seed) for seed in run.seeds)
                having.setdefault(models, []).append((arm, checkpoint))
    unshared = {places[0] for places in having.values() if len({arm for arm, _ in places}) == 1}
    ends = {arm: [name for name in run.checkpoints(arm) if (arm, name) in unshared][-1:] for arm in run.arms}
    policies = []
    for models, places in having.items():
        arm, checkpoint = places[0]
        made_by = models[0].name if isinstance(models[0], Node) else ""
        last = [checkpoint] == (ends[arm] or run.checkpoints(arm)[-1:])
        policies.append(Contender(checkpoint, arm, checkpoint, last, places[0] not in unshared, made_by))
    return [_named(policy, policies, len(run.arms) > 1) for policy in policies]


def _named(policy: Contender, among: Sequence[Contender], several: bool) -> Contender:
    """Return a policy with its name in tables, which is an arm, a checkpoint, or `arm/checkpoint`.

    The last policy of an arm is named after the arm if there are `several` arms. Other policies are named
    after their checkpoint, if no other policy has a checkpoint of this name.
    """
    if policy.last and not policy.shared:
        return replace(policy, name=policy.arm) if several else policy
    alike = [
        other for other in among if other.checkpoint == policy.checkpoint and not (other.last and several)
    ]
    if policy.shared:
        alike = [other for other in alike if other.shared]
    alone = len(alike) == 1
    return replace(policy, name=policy.checkpoint if alone else policy.at, shared=policy.shared or alone)


def model(run: Run, arm: str, checkpoint: str, seed: int) -> Node | str:
    """Return the owner of the stage that made a checkpoint's model; the model's name if no stage made it."""
    node = run.evaluation(arm, checkpoint, seed)
    return run.graph.maker(node) or str(run.graph.model_of(node))


def baseline(run: Run, among: Sequence[Contender]) -> Contender | None:
    """Return the contender that others are compared with; None if `among` is empty.

    It is the reference policy of the evaluations, else the checkpoint `sft`, else the first contender.
    """
    named = run.recipe.evals(run.scale, run.arms[0]).models.reference
    stage = (named or "").partition("@")[0].rpartition("/")[2]
    by_stage = (contender for contender in among if stage and contender.stage == stage)
    by_name = (contender for contender in among if contender.checkpoint == "sft")
    return next(by_stage, None) or next(by_name, None) or next(iter(among), None)


def representatives(among: Sequence[Contender], most: int) -> list[Contender]:
    """Return at most `most` of the contenders, in their order.

    Policies that arms share are chosen first, then one arm's last policy for each stage that made one, then
    other last policies, then the rest.
    """
    shared = [policy for policy in among if policy.shared]
    ends = [policy for policy in among if policy.last and not policy.shared]
    first_of = {policy.stage: policy for policy in reversed(ends)}
    wanted = [*shared, *(policy for policy in ends if first_of[policy.stage] == policy)]
    chosen = list(dict.fromkeys([*wanted, *ends, *among]))[:most]
    return [policy for policy in among if policy in chosen]


def in_arm(run: Run, contender: Contender, arm: str) -> Contender:
    """Return the contender as `arm` evaluated it, with that arm's proxy; unchanged if the arm did not."""
    policy_model = model(run, contender.arm, contender.checkpoint, run.seeds[0])
    for checkpoint in run.checkpoints(arm):
        if model(run, arm, checkpoint, run.seeds[0]) == policy_model:
            return replace(contender, arm=arm, checkpoint=checkpoint)
    return contender


def own_start(run: Run, contender: Contender, start: Contender) -> Contender:
    """Return the counterpart of `start` in the contender's arm, made by the same stage; else `start` itself.

    Arms with models of another size have a start of their own.
    """
    for checkpoint in run.checkpoints(contender.arm):
        made_by = model(run, contender.arm, checkpoint, run.seeds[0])
        if isinstance(made_by, Node) and made_by.name == start.stage:
            return replace(start, arm=contender.arm, checkpoint=checkpoint)
    return start


def proxies(run: Run, among: Sequence[Contender]) -> int:
    """Return the number of different reward models that judge these policies."""
    nodes = (run.evaluation(policy.arm, policy.checkpoint) for policy in among)
    return len({run.graph.inputs(node).get("proxy") for node in nodes} - {None})
