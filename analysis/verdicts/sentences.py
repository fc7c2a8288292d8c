"""The outcome of a run in a few sentences, which are made from its final numbers.

Differences are paired by seed. A sentence says that one arm ends above another only if the interval of the
difference excludes zero.
"""

import math
from collections.abc import Mapping, Sequence

import pandas as pd

from analysis.numbers import tasks
from analysis.numbers.means import Mean, average, number, shown
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from analysis.page.interval_rows import paired
from analysis.statistics.intervals import interval
from analysis.verdicts.summary import plural
from encore.recipe.graph import Node
from encore.recipe.task import Rewarded

CHANCE, RIGHT = (
    "random",
    "accuracy",
)  # the reward that is independent of the answer, and the reward of right answers
# metric of a stage that is trained on random rewards -> its name in the sentence
DRIFT = {
    "last_fifth/accuracy": "share of right samples",
    "last_fifth/entropy": "entropy in nats a token",
    "last_fifth/kl": "KL to the reference in nats a token",
    "mean/clip_fraction": "share of clipped tokens",
}


def sentences(run: Run, numbers: pd.DataFrame) -> list[str]:
    """Return sentences that compare the first arm with other arms, the untrained base, and random rewards."""
    task = tasks.headline(run)
    said = [_others(run, numbers, task), _untrained(run, numbers, task)] if task else []
    return [text for text in (*said, _by_chance(run, numbers)) if text]


def _others(run: Run, numbers: pd.DataFrame, task: str) -> str:
    """Return a sentence on which arms end above the first arm, which below, and which neither for certain."""
    metric, first = f"{task}/{tasks.measure(numbers, task)}", run.arms[0]
    sides: dict[str, list[tuple[float, str]]] = {"above": [], "below": [], "open": []}
    for arm in run.arms[1:]:
        level = average(measured(numbers, f"{arm}/{run.ends[-1]}", metric)).value
        if not math.isnan(level):
            side = _side(paired(numbers, f"{arm}/{run.ends[-1]}", f"{first}/{run.ends[-1]}", metric))
            sides[side].append((level, f"{arm} ({number(level, metric)})"))
    if not any(sides.values()):
        return ""
    parts = [
        f"{_list([name for _, name in sorted(sides[side], reverse=True)])} {_ends(len(sides[side]), how)}"
        for side, how in (("above", "above it"), ("below", "below it"), ("open", ""))
        if sides[side]
    ]
    return f"Against {first}, by {_seeds(len(run.seeds))}: {'; '.join(parts)}."


def _side(differences: Sequence[float]) -> str:
    if len(differences) < 2:
        return "open"
    low, high = interval(differences)
    return "above" if low > 0 else "below" if high < 0 else "open"


def _ends(n: int, how: str) -> str:
    return f"end{'s' * (n == 1)} {how}" if how else "cannot be told from it"


def _untrained(run: Run, numbers: pd.DataFrame, task: str) -> str:
    """Return a sentence that compares the untrained base, with and without voting, with the trained policy.

    Each number is the best over the prompts with which the task's problems were asked.
    """
    if len(run.ends) < 2 or not run.graph.is_base(run.evaluation(run.arms[0], run.ends[0])):
        return ""
    before, after = (f"{run.arms[0]}/{end}" for end in run.ends)
    single, how = _best(run, numbers, before, task, "accuracy")
    trained, _ = _best(run, numbers, after, task, "accuracy")
    if not single.n or not trained.n:
        return ""
    text = f"Untrained, the base answers {shown(single)} right{_asked(how, task)}"
    if votes := tasks.largest(numbers, task, "maj"):
        name = votes.rpartition("/")[2]
        voted, how = _best(run, numbers, before, task, name)
        base, _ = _best(run, numbers, after, task, name)
        if voted.n and base.n:
            k = name.partition("@")[2]
            text += (
                f", and {shown(voted)} when {k} samples vote{_asked(how, task)}: {_beside(voted, trained)} a "
                f"single sample of {run.arms[0]} ({number(trained.value)}) and {_beside(voted, base)} {k} of "
                f"its own that vote ({number(base.value)})"
            )
    return f"{text}."


def _best(run: Run, numbers: pd.DataFrame, at: str, task: str, name: str) -> tuple[Mean, str]:
    """Return the best value of a metric over the tasks with the problems of `task`, and that task's name."""
    arm, _, checkpoint = at.partition("/")
    asked = tasks.tasks(run, arm, checkpoint)
    same = [other for other, spec in asked.items() if spec.task == asked[task].task]
    candidates = [(average(measured(numbers, at, f"{other}/{name}")), other) for other in same]
    measured_ones = [candidate for candidate in candidates if candidate[0].n]
    return max(
        measured_ones,
        key=lambda candidate: candidate[0].value,
        default=(average(measured(numbers, at, "")), task),
    )


def _asked(how: str, task: str) -> str:
    return "" if how == task else f" (asked as in {how})"


def _beside(candidate: Mean, other: Mean) -> str:
    """Return `more than` or `less than`; `about as much as` if the intervals overlap or are missing."""
    if candidate.low > other.high:
        return "more than"
    return "less than" if candidate.high < other.low else "about as much as"


def _by_chance(run: Run, numbers: pd.DataFrame) -> str:
    """Return a sentence on how far arms with random rewards drifted, compared with the first arm."""
    base, paid = _place(run, run.arms[0]), {arm: _paid(run, arm) for arm in run.arms}
    arms = [arm for arm in run.arms if CHANCE in paid[arm] and RIGHT not in paid[arm]]
    if not arms or base is None:
        return ""
    parts = []
    for metric, what in DRIFT.items():
        ends = [_mean(numbers, _place(run, arm), metric) for arm in arms]
        if any(end.n for end in ends):
            ends_shown = _list([number(end.value, metric) for end in ends])
            parts.append(
                f"{what} {ends_shown} ({run.arms[0]}: {number(_mean(numbers, base, metric).value, metric)})"
            )
    others = _list(sorted({name for arm in arms for name in paid[arm] if name != CHANCE}))
    verb, their = ("is", "its") if len(arms) == 1 else ("are", "their")
    return (
        f"{_list(arms)} {verb} paid by chance{f' and for {others}' if others else ''}, right or wrong: "
        f"{their} advantages know nothing of the answer, so what changes is drift"
        f"{'; at the end: ' if parts else ''}{'; '.join(parts)}."
    )


def _paid(run: Run, arm: str) -> list[str]:
    """Return the names of the rewards with nonzero weight in the last stage of an arm that has rewards."""
    rewards = [_rewards(run, stage) for stage in _staged(run, arm)[-1:]]
    return [name for of_stage in rewards for name, weight in of_stage.items() if weight]


def _rewards(run: Run, node: Node) -> Mapping[str, float]:
    """Return reward -> its weight for a stage; {} if the stage has no rewards."""
    stage = run.graph.stage(node)
    return (stage.rewards or {}) if isinstance(stage, Rewarded) else {}


def _place(run: Run, arm: str) -> str | None:
    """Return `arm/stage` of the last stage of an arm that has rewards; None if no stage has rewards."""
    stages = _staged(run, arm)
    return f"{arm}/{run.label(stages[-1])}" if stages else None


def _staged(run: Run, arm: str) -> list[Node]:
    return [node for node in run.stages(arm, run.seeds[0]) if _rewards(run, node)]


def _mean(numbers: pd.DataFrame, at: str | None, metric: str) -> Mean:
    return average(measured(numbers, at or "", metric))


def notice(health: pd.DataFrame, collapses: pd.DataFrame) -> str:
    """Return a sentence on the collapsed runs of each arm, and on how many other arms have warnings.

    The text is empty if nothing collapsed and no check warns. `health` is a table of
    provenance.health.worst(), and `collapses` is a table of verdicts.collapse.rates().
    """
    fallen = collapses[collapses.collapsed > 0]
    parts = [f"{row.arm} collapsed in {row.collapsed} of {row.runs} runs" for row in fallen.itertuples()]
    warned = health[(health.state != "ok") & ~health.arm.isin(fallen.arm)]
    if len(warned):
        checks, more = ("health checks", "other ") if parts else ("Health checks", "")
        names = _list([str(name).replace("_", " ") for name in warned.check.unique()])
        parts.append(f"{checks} ({names}) warn in {plural(warned.arm.nunique(), f'{more}arm')}")
    return f"{'; '.join(parts)}." if parts else ""


def broken(run: Run, health: pd.DataFrame, collapses: pd.DataFrame) -> str:
    """Return the full text behind notice(): each collapse with its reason, and each check that warns.

    It has the arguments of notice(). The text is empty only if both tables are.
    """
    failed = health[health.state != "ok"]
    fallen = collapses[collapses.collapsed > 0]
    parts = []
    for row in fallen.to_dict("records"):
        why = failed[failed.arm == row["arm"]].message.drop_duplicates().tolist()
        reason = f" ({'; '.join(why)})" if why else ", and no health check says why"
        parts.append(f"{row['arm']} collapsed in {row['collapsed']} of {row['runs']} runs{reason}")
    others = failed[~failed.arm.isin(fallen.arm)]
    warned = []
    for check, rows in others.groupby("check", sort=False):
        arms = rows.arm.drop_duplicates().tolist()
        where = "every arm" if len(arms) == len(run.arms) > 1 else _list(arms)
        warned.append(f"{str(check).replace('_', ' ')} in {where} ({rows.message.iloc[0]})")
    if warned:
        parts.append(f"{'health' if parts else 'Health'} checks warn of {'; '.join(warned)}")
    if not len(health) and not len(collapses):
        return ""
    return f"{'; '.join(parts)}." if parts else "No run collapsed, and no health check warns."


def _list(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else "".join(names)


def _seeds(n: int) -> str:
    return f"{n} seed{'s' * (n != 1)}"
