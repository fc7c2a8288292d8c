"""What is kept out of training prompts: the data sets of evaluations."""

from collections.abc import Mapping

from encore.errors import UserError
from encore.recipe.data_sets import is_data_set
from encore.recipe.evals import Evals


def check_decontaminate(stage: Mapping, evals: Evals, path: str, where: str) -> None:
    """Raise UserError unless there are prompts of a data set, and data sets to keep out of them."""
    if not stage.get("decontaminate"):
        return
    parts = [stage, *stage.get("domains", {}).values(), *stage.get("also", {}).values()]
    if not any(is_data_set(part.get("task", {})) for part in parts):
        why = "no task here is a data set; a world's test questions are never trained on"
        raise UserError(f"{path}.decontaminate: {why}{where}")
    if not evals.data_sets:
        raise UserError(
            f"{path}.decontaminate: evals.tasks has no data set to keep out of the prompts{where}"
        )
