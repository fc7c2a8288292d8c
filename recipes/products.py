"""What a stage makes, and which of its roles take what: a model, a reward model, or rows of one kind."""

from collections.abc import Mapping
from typing import Any

from recipes.checks import label
from recipes.errors import UserError
from recipes.shape import schema

# Role -> what a stage must make to play it, unless the kind of the stage that needs it says otherwise.
PLAYED_BY = {
    "demonstrations": "demonstrations",
    "reward_model": "a reward model",
    "proxy": "a reward model",
}


def made(stage: Mapping[str, Any]) -> str:
    """What a stage makes: "a model", "a reward model", "demonstrations", "samples" or "preferences"."""
    if stage["run"] == "label":
        return label.product(stage)
    return schema()["x-kinds"][stage["run"]].get("product", "a model")


def played_by(role: str, run: str | None = None) -> str:
    """What can play `role` in a stage of kind `run` or in an evaluation, such as "samples or preferences"."""
    takes = schema()["x-kinds"][run].get("takes", {}) if run else {}
    wanted = takes.get(role, PLAYED_BY.get(role, "a model"))
    return wanted if isinstance(wanted, str) else " or ".join(wanted)


def check_demonstrations(stage: Mapping[str, Any]) -> None:
    """That a stage `sft` has one source of demonstrations: a stage, a world or a Hub dataset. UserError."""
    own = [key for key in ("task", "template", "corpus", "problems") if key in stage]
    if "data" in stage.get("needs", {}):
        if own:
            raise UserError(f"{own[0]}: needs.data has the demonstrations; remove one of the two")
        return
    task = stage.get("task")
    if task is None:
        raise UserError("needs.data: missing; or give the task, template and corpus of demonstrations")
    absent = "template" if "template" not in stage else "corpus" if "corpus" not in stage else None
    if "world" in task and absent:
        raise UserError(f"{absent}: missing; a world writes its demonstrations by it")
    for key in ("documents", "mixture") if "world" in task else ():
        if key not in stage["corpus"]:
            raise UserError(f"corpus.{key}: missing")
    if "world" in task and "problems" in stage:
        raise UserError("problems: of a Hub dataset; a world writes corpus.documents")
