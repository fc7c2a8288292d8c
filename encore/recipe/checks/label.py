"""Which roles, dials and keys of a stage `label` go together; checked before any job starts."""

from collections.abc import Mapping
from typing import Any

from encore import worlds
from encore.errors import UserError, nearest
from encore.recipe.eval_tasks import PLACES
from encore.recipe.graph import Graph, Node

# by (who labels) -> the roles it needs
NEEDS: dict[str, tuple[str, ...]] = {
    "gold": ("data",),
    "annotator": ("data",),
    "judge": ("data",),
    "reward_model": ("data", "reward_model"),
    "self": ("data", "policy", "reference"),
    "verifier": ("data",),
    "language_model": ("data",),
    "dataset": (),
}
# by -> a role that it may need, in place of the dial `model`
MAY_NEED: dict[str, tuple[str, ...]] = {"language_model": ("policy",)}
# by -> its dials, under `labeller`
DIALS: dict[str, tuple[str, ...]] = {
    "annotator": ("agreement", "accuracy", "temperature"),
    "judge": ("accuracy", "temperature", "bias", "length_bias", "position_bias", "both_orders"),
    "reward_model": ("ensemble",),
    "self": ("beta",),
    "language_model": ("model", "question", "both_orders"),
}
# by -> the reward that it perceives, which the world of the samples must have
REWARDS = {"gold": "gold", "annotator": "gold", "judge": "judge"}
OF_DATASETS = ("task", "template", "problems")  # keys of by: dataset alone
AGAIN = ("reward_model", "self", "language_model")  # they can label preferences anew


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError at the first keys of a resolved `label` stage that do not go together."""
    by, needs, dials = stage["by"], stage.get("needs", {}), stage.get("labeller", {})
    for role in NEEDS[by]:
        if role not in needs:
            raise UserError(f"needs.{role}: missing; by: {by} needs {' and '.join(NEEDS[by])}")
    for role in needs:
        if role not in (*NEEDS[by], *MAY_NEED.get(by, ())):
            raise UserError(f"needs.{role}: by: {by} does not use it; remove it")
    own = DIALS.get(by, ())
    for dial in dials:
        if dial not in own:
            hint = nearest(dial, [*own]) if own else "; it has none"
            raise UserError(f"labeller.{dial}: no dial of by: {by}{hint}")
    for key in OF_DATASETS if by != "dataset" else ():
        if key in stage:
            raise UserError(f"{key}: the samples have it; it goes with by: dataset alone; remove it")
    if by == "annotator" and len(dials) != 1:
        raise UserError(f"labeller: expected one of {', '.join(own)}, got {', '.join(dials) or 'none'}")
    if by == "judge" and {"accuracy", "temperature", "bias"} <= dials.keys():
        raise UserError("labeller.accuracy: it follows from temperature and bias; remove one of the three")
    if by == "language_model":
        if "model" not in dials and "policy" not in needs:
            raise UserError("labeller.model: missing; by: language_model needs it, or needs.policy")
        if "model" in dials and "policy" in needs:
            raise UserError("labeller.model: needs.policy is asked too; remove one of them")
        if "question" not in dials:
            raise UserError("labeller.question: missing; by: language_model needs it")
        for place in PLACES:
            if dials["question"].count(place) != 1:
                raise UserError(f"labeller.question: expected {place} exactly once")
    if by == "dataset" and "task" not in stage:
        raise UserError("task: missing; by: dataset needs it")
    if (keep := stage.get("keep", "preferences")) != "preferences":
        if keep == "right" and by != "verifier":
            raise UserError(f"keep: right is of by: verifier alone, got by: {by}; expected best")
        if "validation" in stage:
            raise UserError(f"validation: demonstrations (keep: {keep}) have no such split; remove it")


def check_samples(graph: Graph, node: Node) -> None:
    """Raise UserError where a stage `label` perceives a reward that the world of its data does not have."""
    stage = graph.stage(node)
    if stage["run"] != "label" or "data" not in stage.get("needs", {}):
        return
    source = graph.needs(node)["data"]
    drawn = graph.stage(source)
    by, where = stage["by"], f"stage {source.name}"
    if drawn["run"] == "label":
        check_relabels(by, where)
    elif by in REWARDS:
        check_world(by, worlds.of_task(drawn["task"]), where)


def check_relabels(by: str, where: str) -> None:
    """Raise UserError unless `by` can label preferences anew: they no longer have the task they are of."""
    if by not in AGAIN:
        raise UserError(f"by: {by} takes samples, {where} makes preferences; those take {' or '.join(AGAIN)}")


def check_world(by: str, world: Any, where: str) -> None:
    """Raise UserError unless the samples' world (None: a Hub dataset) has the reward that `by` perceives."""
    reward = REWARDS.get(by)
    if reward and (world is None or reward not in world.rewards):
        name = f"world {world.name}" if world else "a Hub dataset"
        raise UserError(f"by: {by} needs a world with the reward {reward}; {where} is of {name}")
