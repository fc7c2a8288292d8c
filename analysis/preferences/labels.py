"""The table of the quality of labels, from the recipe's `label` stages."""

import pandas as pd

from analysis.numbers.means import DASH, average, with_interval
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from encore.recipe.kinds.label import LabelStage
from encore.recipe.kinds.stage import Stage

KIND = "label"
LEADING = ("pairs", "agreement", "accuracy")  # metrics that come first in the table
NOT_SHOWN = ("last", "last_fifth", "mean", "max")


def labels(run: Run, table: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each distinct `label` stage and metric: the labeller, and the mean over seeds."""
    rows, seen = [], set()
    for arm in run.arms:
        for node in run.stages(arm, run.seeds[0], KIND):
            label = run.label(node)
            numbers = table[(table.arm == arm) & (table.node == label) & table.step.isna()]
            key = tuple(sorted(numbers.source.unique()))
            if not len(numbers) or (key, label) in seen:
                continue
            seen.add((key, label))
            metrics = [
                metric for metric in numbers.metric.unique() if metric.partition("/")[0] not in NOT_SHOWN
            ]
            for metric in sorted(metrics, key=_place):
                mean = average(measured(table, f"{arm}/{label}", metric))
                by = {"arm": arm, "stage": label, "by": _labeller(run.graph.stage(node)), "metric": metric}
                rows.append(by | mean.columns())
    return pd.DataFrame(rows, columns=["arm", "stage", "by", "metric", "value", "low", "high"])


def _place(metric: str) -> tuple[int, str]:
    first = metric.partition("/")[0]
    return (LEADING.index(first) if first in LEADING else len(LEADING), metric)


def _labeller(stage: Stage) -> str:
    """Return the labeller in words, such as `annotator, agreement 0.75`."""
    assert isinstance(stage, LabelStage)
    dials = stage.labeller.model_dump(exclude_unset=True)
    return ", ".join([stage.by, *(f"{key.replace('_', ' ')} {value}" for key, value in dials.items())])


def labels_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of labels() for readers, a row for each stage, without counts that are always 0."""
    columns = [
        metric
        for metric in dict.fromkeys(frame.metric)
        if metric in ("agreement", "accuracy") or frame.value[frame.metric == metric].any()
    ]
    rows = []
    for (arm, stage, by), group in frame.groupby(["arm", "stage", "by"], sort=False):
        row = {"": f"{arm}/{stage}", "labelled by": by}
        values = group.set_index("metric")
        for metric in columns:
            cell = values.loc[metric] if metric in values.index else None
            row[metric.replace("_", " ")] = DASH if cell is None else _cell(cell)
        rows.append(row)
    return pd.DataFrame(rows).fillna(DASH)


def _cell(values: pd.Series) -> str:
    """Return a value as text: a count as a whole number, a share with its interval."""
    if abs(values.value) >= 2 or float(values.value).is_integer():
        return f"{values.value:,.0f}"
    return with_interval(values.value, values.low, values.high)
