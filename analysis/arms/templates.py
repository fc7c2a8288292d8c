"""Base models with each of their candidate templates: the best template, and the results of the others."""

import pandas as pd

from analysis.numbers.means import average, with_interval
from analysis.numbers.run import Run, read_json
from analysis.numbers.table import measured
from analysis.numbers.tasks import tasks
from encore.recipe.metric_names import by_template
from encore.recipe.sensitivity import OWN


def templates(run: Run, table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each base model, task and candidate template, with the accuracy by this template.

    `best_of` is the number of models (one for each seed) whose best template it is. A base model that arms
    share has rows once, under the first of them.
    """
    rows, seen = [], set()
    for arm in run.arms:
        for checkpoint in run.checkpoints(arm):
            for task, spec in tasks(run, arm, checkpoint).items():
                at = f"{arm}/{checkpoint}"
                sources = tuple(measured(table, at, f"{task}/accuracy").source.unique())
                if not spec.templates or not sources or (task, sources) in seen:
                    continue
                seen.add((task, sources))
                best = [_chosen(run, source, task) for source in sources]
                for name in (OWN, *spec.templates):
                    mean = average(measured(table, at, f"{by_template(task, name)}/accuracy"))
                    rows.append(
                        {"arm": arm, "checkpoint": checkpoint, "task": task, "template": name}
                        | mean.columns("accuracy", "accuracy_")
                        | {"best_of": best.count(name), "models": len(sources)}
                    )
    return pd.DataFrame(rows)


def templates_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of templates() for readers."""
    return pd.DataFrame(
        {
            "checkpoint": f"{row['arm']}/{row['checkpoint']}, {row['task']}",
            "template": row["template"],
            "accuracy": with_interval(row["accuracy"], row["accuracy_low"], row["accuracy_high"]),
            "best of models": f"{row['best_of']}/{row['models']}",
        }
        for row in frame.to_dict("records")
    )


def best(frame: pd.DataFrame) -> dict[tuple[str, str, str], str]:
    """Return (arm, checkpoint, task) -> the best templates of its models, joined by commas.

    `frame` is a table of templates().
    """
    result: dict[tuple[str, str, str], str] = {}
    for row in frame.to_dict("records"):
        if row["best_of"]:
            place = (row["arm"], row["checkpoint"], row["task"])
            result[place] = f"{result[place]}, {row['template']}" if place in result else row["template"]
    return result


def _chosen(run: Run, source: str, task: str) -> str:
    """Return the template that an evaluation found to be the best; `source` is the file of its result."""
    return ((read_json(run.artefact(source)) or {}).get("tasks", {}).get(task) or {}).get("template", OWN)
