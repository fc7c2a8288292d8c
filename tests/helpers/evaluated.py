"""The tasks of an evaluation as its job reads them."""

from typing import Any

from encore.recipe.eval_tasks import EvalTask
from encore.recipe.evals import job
from evals import metrics


def parse(config: dict[str, Any]) -> list[EvalTask]:
    return [*job(config).tasks.values()]


def task_of(**spec: Any) -> EvalTask:
    return parse({"tasks": {"heldout": spec}})[0]


def values(rows: list[dict[str, Any]], task: EvalTask) -> dict[str, float]:
    return {name: number["value"] for name, number in metrics.summary(rows, task.k)["metrics"].items()}
