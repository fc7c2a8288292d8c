"""Runs that collapsed: how many of each arm, and what rate of collapse is possible if no run collapsed.

A run has collapsed if it surely ends far below its beginning: the 95% interval of its last accuracy lies
entirely below half of its first accuracy. If arms are compared by gold reward, the interval of the last gold
reward lies more than one standard deviation (of the base model's replies) below the first gold reward.

A number read off a frontier (numbers.frontiers) is interpolated between two points. It counts as the number
of a collapsed run if one of the two points lies as far below the beginning of its arm. A collapsed run
elsewhere on the frontier does not affect the number, and at the far end runs are meant to fall. A gold reward
read off the curve of one run at a KL (numbers.curve_metrics) counts as the number of a collapsed run if it
lies that far below itself.

A later collapse of a run does not affect an earlier number. So a stage that the arm's last model depends on,
such as its reward model, is judged by the checkpoints at the stage or, if there are none, by the checkpoints
before it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from analysis.numbers import frontiers, tasks
from analysis.numbers.means import DASH, p_value, with_interval
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from analysis.statistics.intervals import LEVEL
from analysis.statistics.proportions import boschloo, clopper_pearson
from encore.recipe.claims import FRONTIER, Comparison, frontier
from encore.recipe.graph import Node
from encore.recipe.metric_names import AT_KL, COLLAPSED

# metric that arms are compared by -> function from a run's first value to the bound of a collapse
FAR_BELOW: dict[str, Callable[[pd.Series], pd.Series]] = {
    "accuracy": lambda before: before / 2,
    "gold": lambda before: before - 1,
}


@dataclass(frozen=True)
class Collapses:
    """The seeds whose runs collapsed.

    `seeds` maps an arm to the seeds that had collapsed at its end; it also maps an earlier checkpoint or
    stage, such as `arm/dev1`, to the seeds that had collapsed there. `read` maps (place, metric) to the seeds
    whose number was read at a KL at which the run, or a neighbouring run on a frontier, had collapsed.
    """

    seeds: Mapping[str, frozenset[int]] = field(default_factory=dict)
    read: Mapping[tuple[str, str], frozenset[int]] = field(default_factory=dict)

    def beside(self, comparison: Comparison, seeds: Sequence[int]) -> "Rates | None":
        """Return the number of collapsed runs on each side of a comparison; None if no run collapsed.

        The result is also None if an arm is compared with itself, or if rates of collapse are compared.
        """
        compared = comparison.sides
        whole = [_whole(place) for place, _ in compared]
        if COLLAPSED.fullmatch(comparison.metric) or len(set(whole)) < 2:
            return None
        first, second = (len(self._at(place, metric) & set(seeds)) for place, metric in compared)
        return Rates(whole[0], whole[1], first, second, len(seeds)) if first or second else None

    def _at(self, place: str, metric: str) -> frozenset[int]:
        if (place, metric) in self.read:
            return self.read[place, metric]
        return self.seeds.get(place, self.seeds.get(_whole(place), frozenset()))


@dataclass(frozen=True)
class Rates:
    """The number of collapsed runs on each side of a claim.

    Both sides have the same number of runs, and at least one run collapsed.
    """

    of: str  # the arm or frontier
    against: str
    of_collapsed: int
    against_collapsed: int
    runs: int

    @property
    def one_sided(self) -> bool:
        """Whether some runs have collapsed, but on one side only.

        The mean of that side is then over two kinds of run, and says little about either. If all runs of a
        side have collapsed, they are of one kind.
        """
        some = self.of_collapsed or self.against_collapsed
        return not (self.of_collapsed and self.against_collapsed) and some < self.runs

    def __str__(self) -> str:
        """Return text: `3 of 16 runs of a collapsed, 0 of 16 of b (Boschloo's exact test: p = 0.111)`."""
        p = boschloo(self.of_collapsed, self.runs, self.against_collapsed, self.runs)
        return (
            f"{self.of_collapsed} of {self.runs} runs of {self.of} collapsed, {self.against_collapsed} of "
            f"{self.runs} of {self.against} (Boschloo's exact test: {p_value(p)})"
        )


def _whole(place: str) -> str:
    """Return the arm of a place such as `arm/checkpoint`; a place on a frontier is returned as it is."""
    return place if frontier(place) is not None else place.partition("/")[0]


def collapses(run: Run, numbers: pd.DataFrame) -> Collapses:
    """Return the runs that collapsed, from the final numbers."""
    fallen = {arm: _fallen(rows) for arm, rows in _ends(run, numbers)}
    for arm in list(fallen):
        at = {name: _fallen(_since_beginning(run, numbers, f"{arm}/{name}")) for name in run.checkpoints(arm)}
        fallen |= {f"{arm}/{name}": seeds for name, seeds in (_at_stages(run, arm, at) | at).items()}
    return Collapses(fallen, _read_on_frontiers(run, numbers) | _read_on_curves(run, numbers))


def _at_stages(run: Run, arm: str, at: Mapping[str, frozenset[int]]) -> dict[str, frozenset[int]]:
    """Return each stage that the arm's last model depends on -> the seeds that had collapsed there.

    `at` maps the arm's checkpoints to the seeds that had collapsed there.
    """
    models = {name: _model(run, arm, name) for name in at}
    *_, last = models.values()
    ends = run.graph.with_upstream([last] if last else [])
    stages = {}
    for name in run.recipe.stages(run.scale, arm):
        stage = run.graph.owner(run.stage(arm, run.seeds[0], name))
        at_stage = [checkpoint for checkpoint, model in models.items() if model == stage]
        if stage in ends:
            before = run.graph.with_upstream([stage])
            places = at_stage or [checkpoint for checkpoint, model in models.items() if model in before]
            stages[name] = frozenset().union(*(at[place] for place in places))
    return stages


def _read_on_frontiers(run: Run, numbers: pd.DataFrame) -> dict[tuple[str, str], frozenset[int]]:
    readings = frontiers.readings(run.document, numbers)
    places = {point.place for reading in readings for point in reading.between}
    fallen = {place: _fallen(_since_beginning(run, numbers, place)) for place in places}
    read: dict[tuple[str, str], frozenset[int]] = {}
    for reading in readings:
        key = f"{FRONTIER}/{reading.frontier}", reading.metric
        beside = any(reading.seed in fallen[point.place] for point in reading.between)
        read[key] = read.get(key, frozenset()) | ({reading.seed} if beside else set())
    return read


def _read_on_curves(run: Run, numbers: pd.DataFrame) -> dict[tuple[str, str], frozenset[int]]:
    """Return (place, metric) of each gold reward that claims compare at a KL -> the collapsed seeds."""
    read = {}
    for place, metric in (side for claim in run.document.claims.values() for side in claim.test.sides):
        if (match := AT_KL.fullmatch(metric)) and match[1] == "gold" and _whole(place) in run.arms:
            before = measured(numbers, _beginning(run, place), f"{tasks.headline(run)}/gold").value
            read[place, metric] = _fallen(_far_below("gold", before, measured(numbers, place, metric).value))
    return read


def _fallen(rows: pd.DataFrame) -> frozenset[int]:
    return frozenset(rows.index[rows.collapsed])


def _ends(run: Run, numbers: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Return _since_beginning() of the last checkpoint for each arm whose beginning was evaluated too.

    An arm is left out if no seed has both numbers.
    """
    last = {arm: f"{arm}/{run.checkpoints(arm)[-1]}" for arm in run.arms if run.checkpoints(arm)}
    begun = [(arm, place) for arm, place in last.items() if _beginning(run, place) != place]
    arms = [(arm, _since_beginning(run, numbers, place)) for arm, place in begun]
    return [(arm, rows) for arm, rows in arms if len(rows)]


def _since_beginning(run: Run, numbers: pd.DataFrame, place: str) -> pd.DataFrame:
    """Return a row for each seed; `collapsed`: whether it collapsed from the arm's beginning to `place`."""
    task = tasks.headline(run)
    measure = tasks.measure(numbers, task)
    if measure not in FAR_BELOW:
        return pd.DataFrame({"collapsed": pd.Series(dtype=bool)})
    first, last = (measured(numbers, at, f"{task}/{measure}") for at in (_beginning(run, place), place))
    return _far_below(measure, first.value, last.high)


def _beginning(run: Run, place: str) -> str:
    """Return the evaluation of the model with which the arm of `place` begins, as `arm/checkpoint`.

    It is the arm's first checkpoint. If that is the arm's only one, it is another arm's evaluation of the
    policy that was trained into it, if there is one. The result is "" for an arm without checkpoints.
    """
    arm = _whole(place)
    names = run.checkpoints(arm)
    if len(names) != 1:
        return f"{arm}/{names[0]}" if names else ""
    trained = _model(run, arm, names[0])
    policy = run.graph.inputs(trained).get("policy") if trained else None
    others = ((other, name) for other in run.arms for name in run.checkpoints(other))
    start = next(
        (f"{other}/{name}" for other, name in others if policy and _model(run, other, name) == policy), ""
    )
    return start or f"{arm}/{names[0]}"


def _model(run: Run, arm: str, checkpoint: str) -> Node | None:
    """Return the stage whose model a checkpoint of the run's first seed is; None if no stage made it."""
    return run.graph.maker(run.evaluation(arm, checkpoint))


def _far_below(measure: str, before: pd.Series, after: pd.Series) -> pd.DataFrame:
    """Return a row for each seed that has both numbers: before, most (which is `after`) and collapsed."""
    ends = pd.DataFrame({"before": before, "most": after}).dropna()
    return ends.assign(collapsed=ends.most < FAR_BELOW[measure](ends.before))


def rates(run: Run, numbers: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each arm: runs, collapsed, rate, and its exact 95% interval (Clopper & Pearson).

    If no run collapsed, `unseen` is the upper 95% bound of the rate, 1 - 0.05^(1/runs); otherwise nan. `p` is
    the p-value for a rate that differs from the first arm's, by Boschloo's exact test.
    """
    rows: list[list[Any]] = []
    for arm, ends in _ends(run, numbers):
        n, k = len(ends), int(ends.collapsed.sum())
        unseen = float("nan") if k else 1 - (1 - LEVEL) ** (1 / n)
        p = boschloo(k, n, rows[0][2], rows[0][1]) if rows else float("nan")
        rows.append([arm, n, k, k / n, *clopper_pearson(k, n), unseen, p])
    return pd.DataFrame(rows, columns=["arm", "runs", "collapsed", "rate", "low", "high", "unseen", "p"])


def rates_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of rates() as text for readers."""
    shown = [
        {
            "arm": row["arm"],
            "collapsed": f"{row['collapsed']}/{row['runs']}",
            "rate": with_interval(row["rate"], row["low"], row["high"]),
            "may be unseen": "" if row["collapsed"] else f"up to {row['unseen']:.0%}",
            "another rate than the first": p_value(row["p"]) or DASH,
        }
        for row in frame.to_dict("records")
    ]
    columns = ["arm", "collapsed", "rate", "may be unseen", "another rate than the first"]
    return pd.DataFrame(shown, columns=columns)
