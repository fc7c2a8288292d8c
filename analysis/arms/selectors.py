"""Accuracy of the answer that is selected from n samples: by a reward model, the majority, or an oracle.

The comparison follows Lightman et al. (2023, arXiv 2305.20050, Fig. 3) and Wang et al. (2023, arXiv
2312.08935).
"""

from collections.abc import Iterator

import pandas as pd

from analysis.numbers.means import DASH, Mean, with_interval
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from analysis.numbers.tasks import by_count
from analysis.preferences.contenders import Contender, asked_tasks, contenders, in_arm
from encore.recipe.kinds.reward_model import RewardModelStage
from encore.recipe.metric_names import SELECTORS, task_of

COLUMNS = ["task", "policy", "arm", "selector", "n", "accuracy", "low", "high"]
# `labels` of a reward model -> the name of its score of the whole completion; without labels, it was trained
# on comparisons
WHOLE = {"steps": "PRM, last step", "outcome": "ORM"}
COMPARED = "reward model"
BY_STEPS = {"bon_product": "PRM, product", "bon_min": "PRM, minimum"}
ORACLE = "oracle (pass@n)"
BESIDE = {"maj": "majority", "pass": ORACLE}  # metric -> its selector that is no reward model
ORDER = (*BY_STEPS.values(), *WHOLE.values(), COMPARED, *BESIDE.values())
Found = tuple[str, str, dict[int, Mean]]  # arm of the reward model, or ""; selector; n -> accuracy


def selectors(run: Run, numbers: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each task, policy, selector and n, with the accuracy of the selected answer.

    A policy has rows only if a reward model selects for two values of n or more. `arm` is the arm of the
    reward model; "" if the selector is no reward model. `policy` is a name from preferences.contenders.
    """
    selected = {task_of(metric) for metric in numbers.metric.unique() if "/accuracy/bon" in metric}
    by_task = {
        task: numbers[numbers.metric.str.startswith(f"{task}/")]
        for task in asked_tasks(run)
        if task in selected
    }
    rows = [
        (task, policy.name, arm, selector, n, mean.value, mean.low, mean.high)
        for task, places in by_task.items()
        for policy in contenders(run, places, task)
        for arm, selector, curve in _of_policy(run, places, task, policy)
        for n, mean in curve.items()
    ]
    return pd.DataFrame(rows, columns=COLUMNS)


def _of_policy(run: Run, numbers: pd.DataFrame, task: str, policy: Contender) -> list[Found]:
    """Return a policy's curves, sorted by selector as in ORDER, and then by arm."""
    places = list(dict.fromkeys(in_arm(run, policy, arm) for arm in run.arms))
    curves = list(_selected(run, numbers, task, places))
    if not curves:
        return []
    for name, selector in BESIDE.items():
        beside = (by_count(numbers, place.at, f"{task}/{name}") for place in places)
        curves += [("", selector, curve) for curve in list(filter(None, beside))[:1]]
    return sorted(curves, key=lambda item: ORDER.index(item[1]))


def _selected(run: Run, numbers: pd.DataFrame, task: str, places: list[Contender]) -> Iterator[Found]:
    """Yield arm, selector and curve for each reward model that selects at these places.

    An evaluation that arms share comes once.
    """
    seen = set()
    for place in places:
        for best in SELECTORS.values():
            name = f"{task}/accuracy/{best}"
            curve = by_count(numbers, place.at, name)
            if len(curve) < 2:
                continue
            evaluations = (best, *measured(numbers, place.at, f"{name}@{max(curve)}").source)
            if evaluations not in seen:
                seen.add(evaluations)
                yield place.arm, BY_STEPS.get(best) or _whole(run, place), curve


def _whole(run: Run, place: Contender) -> str:
    """Return the selector's name for a reward model that selects by its score of the whole completion."""
    proxy = run.graph.inputs(run.evaluation(place.arm, place.checkpoint))["proxy"]
    stage = run.graph.stage(proxy)
    return WHOLE.get(stage.labels or "", COMPARED) if isinstance(stage, RewardModelStage) else COMPARED


def selectors_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with the largest n for readers, without columns that have the same value everywhere."""
    rows = [
        {
            "task": task,
            "policy": policy,
            "selected by": selector,
            "reward model of": arm or DASH,
            "n": group.n.iloc[-1],
            "accuracy": with_interval(*group[["accuracy", "low", "high"]].iloc[-1]),
        }
        for (task, policy, arm, selector), group in frame.groupby(COLUMNS[:4], sort=False)
    ]
    wide = pd.DataFrame(rows)
    single = {"task": frame.task.nunique(), "reward model of": frame.arm[frame.arm != ""].nunique()}
    return wide.drop(columns=[column for column, number in single.items() if number == 1]) if rows else wide
