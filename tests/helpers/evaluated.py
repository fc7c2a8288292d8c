"""The tasks of an evaluation as its job reads them."""

from typing import Any

from encore.recipe.eval_tasks import EvalTask
from encore.recipe.evals import job


def parse(config: dict[str, Any]) -> list[EvalTask]:
    return [*job(config).tasks.values()]
