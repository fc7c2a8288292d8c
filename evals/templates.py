"""The measurement of a base model with each of several prompt templates, of which the best one counts.

A base model never learnt a template: with another one it may do far better, and the template alone may
explain what RL seems to bring (arXiv 2503.20783, §2). So a task may list candidates (`templates`), and the
base is asked all problems with each. The numbers and samples of the task come from the most accurate
candidate; the others appear beside it as `task@template`. Choice and measurement use the same problems, which
favours the base, so that gains over the base look smaller.
"""

from collections.abc import Callable, Mapping
from typing import Any

from encore.recipe.eval_tasks import EvalTask
from encore.recipe.metric_names import by_template
from encore.recipe.sensitivity import OWN
from evals import metrics

Row = dict[str, Any]  # a row of evals.harness.sample
Measured = dict[str, Any]  # the content of evals.metrics.summary


def candidates(task: EvalTask) -> dict[str, EvalTask]:
    """Return template's name -> the task with this template; the task's own form comes first."""
    if not task.templates:
        return {OWN: task}
    others = {
        name: task.changed(template=template, chat=None).named(by_template(task.name, name))
        for name, template in task.templates.items()
    }
    return {OWN: task.named(by_template(task.name, OWN))} | others


def best(measured: Mapping[str, Measured]) -> str:
    """Return the name of the most accurate template; of equally accurate ones, the first."""
    return max(measured, key=lambda name: measured[name]["metrics"]["accuracy"]["value"])


def measure(task: EvalTask, draw: Callable[[EvalTask], list[Row]]) -> tuple[Measured, list[Row]]:
    """Return the metrics and the rows of a task; `draw` returns the rows of a task with one template.

    If the task lists candidates, the metrics are the best candidate's, with its name as "template", and as
    "templates" name -> metrics of each candidate. The best candidate's rows have the name of the task, all
    other rows `task@template`.
    """
    drawn = {name: draw(candidate) for name, candidate in candidates(task).items()}
    measured = {name: metrics.summary(rows, task.k) for name, rows in drawn.items()}
    if not task.templates:
        return measured[OWN], drawn[OWN]
    chosen = best(measured)
    for row in drawn[chosen]:
        row["task"] = task.name
    result = measured[chosen] | {"template": chosen, "templates": measured}
    return result, [row for rows in drawn.values() for row in rows]
