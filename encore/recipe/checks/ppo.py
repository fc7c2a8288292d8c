"""Keys of a `ppo` stage that contradict each other; checked before any job starts."""

from collections.abc import Iterable, Mapping
from typing import Any

from encore import worlds
from encore.data import corpora
from encore.errors import UserError
from encore.recipe.checks.grpo import check_lean

REWARD_MODEL = "reward_model"
OF_WORLD = ("task", "template", "corpus")


def check(stage: Mapping[str, Any]) -> None:
    """Raise UserError at the first combination in a resolved `ppo` stage that makes no sense."""
    needs, weights = stage.get("needs", {}), stage["rewards"]
    if REWARD_MODEL in weights and REWARD_MODEL not in needs:
        raise UserError("rewards.reward_model: needs.reward_model is missing; name the stage that trains it")
    if not any(weights.values()):
        raise UserError("rewards: expected one with a weight other than 0")
    if REWARD_MODEL in needs and REWARD_MODEL not in weights and stage.get("critic") != REWARD_MODEL:
        raise UserError("needs.reward_model: neither rewards nor critic uses it; remove it")
    if stage.get("critic") == REWARD_MODEL and REWARD_MODEL not in needs:
        raise UserError("critic: reward_model, but needs.reward_model is missing")
    if "ensemble" in stage and REWARD_MODEL not in weights:
        raise UserError("ensemble: rewards.reward_model is missing, there is nothing to aggregate")
    if stage.get("sampler") == "lean":
        check_lean(stage)
    if "ptx" in stage:
        _check_ptx(stage["ptx"])


def _check_ptx(ptx: Mapping[str, Any]) -> None:
    """Raise UserError unless `ptx` has its numbers and one source of documents."""
    for key in ("coefficient", "batch_size"):
        if key not in ptx:
            raise UserError(f"ptx.{key}: missing")
    given = [key for key in OF_WORLD if key in ptx]
    if ("data" in ptx) == bool(given):
        both = "both are" if given else "neither is"
        raise UserError(
            f"ptx: its documents are those of data, or of task, template and corpus; {both} given"
        )
    if "data" in ptx:
        return
    for key in OF_WORLD:
        if key not in ptx:
            raise UserError(f"ptx.{key}: missing")
    for key in ("documents", "mixture"):
        if key not in ptx["corpus"]:
            raise UserError(f"ptx.corpus.{key}: missing")

    world = worlds.of_task(ptx["task"])
    if world is None:
        raise UserError("ptx.task: a corpus is written by a world; for documents of the Hub take data")
    worlds.prompt(ptx["template"], "")
    corpora.check(world, ptx["corpus"])


def own(names: Iterable[str]) -> list[str]:
    """The rewards of encore/rewards/rules.py or of a world: all but the reward model's."""
    return [name for name in names if name != REWARD_MODEL]
