"""The first words of a report: the head of the page, and the first five lines of summary.txt."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.numbers import in_words, tasks
from analysis.numbers.means import DASH, Mean, average, number, shown
from analysis.numbers.run import Run
from analysis.numbers.table import measured
from analysis.verdicts import claims, one_seed, whose
from analysis.verdicts.rule import REVERSED
from encore.recipe.looks import LOOKS
from encore.recipe.recipe import Recipe

ARROW = " \N{RIGHTWARDS ARROW} "


@dataclass(frozen=True)
class Change:
    """A metric of the first arm before and after training; one value if only one checkpoint is evaluated."""

    metric: str
    sides: tuple[Mean, ...]

    def text(self, interval: bool = True) -> str:
        """Return the metric before and after training, as `0.190 [0.179, 0.200] → 0.800 [0.792, 0.808]`."""
        show = shown if interval else lambda mean, metric: number(mean.value, metric)
        return ARROW.join(show(side, self.metric) for side in self.sides) or DASH


def change(run: Run, table: pd.DataFrame, metric: str) -> Change:
    """Return `metric` of the first arm at the checkpoints before and after training."""
    rows = (measured(table, f"{run.arms[0]}/{name}", metric) for name in run.ends)
    return Change(metric, tuple(average(numbers) for numbers in rows))


def stated(recipe: Recipe, scale: str, verdicts: Sequence[claims.Verdict]) -> list[claims.Verdict]:
    """Return the verdicts on the claims that the recipe states at `scale`, without claims of other scales."""
    ids = {claim.id for claim in recipe.claims(scale)}
    return [v for v in verdicts if v.id in ids]


def plural(n: int, word: str) -> str:
    return f"{n} {word}{'' if n == 1 else 's'}"


def title(recipe: Recipe) -> str:
    return " ".join(recipe.document.title.split())


def stopped(run: Run) -> str:
    """Return the number of arms that a look stopped as ` (stopped once decided: 2 at 8 seeds)`, or ""."""
    counts = Counter(sorted(run.stopped.values()))
    parts = [f"{arms} at {plural(seeds, 'seed')}" for seeds, arms in counts.items()]
    return f" (stopped once decided: {', '.join(parts)})" if parts else ""


@dataclass(frozen=True)
class Head:
    """The head of the page, above its sections: the outcome of the first arm."""

    title: str
    model: str  # the trained model and its task, in words
    problems: str
    task: str
    measure: str  # metric that arms are compared by
    accuracy: Change
    length: Change
    gold: Change
    wins: Change
    passes: Change  # pass@k with the largest k; its metric is "" if no k was measured


def head(run: Run, numbers: pd.DataFrame) -> Head:
    task = tasks.headline(run)
    names = ("accuracy", "length", "gold", "win_rate")
    accuracy, length, gold, wins = (change(run, numbers, f"{task}/{name}") for name in names)
    passes = change(run, numbers, tasks.largest(numbers, task, "pass") or "")
    words = in_words.model(run, numbers), in_words.task(run)
    measure = tasks.measure(numbers, task)
    return Head(title(run.recipe), *words, task, measure, accuracy, length, gold, wins, passes)


def lines(
    run: Run,
    table: pd.DataFrame,
    verdicts: Sequence[claims.Verdict],
    over_problems: Mapping[str, one_seed.Difference],
) -> list[str]:
    """Return the five lines of summary.txt.

    They are the run, its accuracy or gold reward, the response length, the number of claims with each
    verdict, and the foremost claims.
    """
    task, arm, judged = tasks.headline(run), run.arms[0], stated(run.recipe, run.scale, verdicts)
    size = (
        f"{run.scale} scale, {plural(len(run.seeds), 'seed')}, {plural(len(run.arms), 'arm')}{stopped(run)}"
    )
    accuracy = change(run, table, f"{task}/accuracy").text()
    length = change(run, table, f"{task}/length").text()
    hint = f" (a decision takes {LOOKS[0]} seeds)" if judged and len(run.seeds) < LOOKS[0] else ""
    where = f"on {task}, {arm}, {ARROW.join(run.ends)}" if task else "(no model is evaluated)"
    quality = f"Accuracy {where}: {accuracy}"
    if tasks.measure(table, task) == "gold":
        gold, wins = (change(run, table, f"{task}/{name}").text() for name in ("gold", "win_rate"))
        quality = f"Gold reward {where}: {gold}; win rate: {wins}"
    return [
        f"{title(run.recipe)}: {size}",
        quality,
        f"Response length in tokens: {length}",
        f"Claims: {whose.of_recipe(run.recipe, judged).told()}{hint}",
        foremost(judged, over_problems),
    ]


def foremost(
    verdicts: Sequence[claims.Verdict], over_problems: Mapping[str, one_seed.Difference], most: int = 3
) -> str:
    """Return at most `most` tested claims in one line: the first claim, then reversed claims, then others."""
    tested = [v for v in verdicts if v.n]
    order = tested[:1] + sorted(tested[1:], key=lambda v: v.word != REVERSED)
    said = [f"{v.id} {v.word} ({_numbers(v, over_problems)})" for v in order[:most]]
    return "; ".join(said) or "No claim could be tested."


def _numbers(v: claims.Verdict, over_problems: Mapping[str, one_seed.Difference]) -> str:
    """Return a text such as `d = 0.507 [0.465, 0.539], detectable 0.088, 5 seeds`.

    For a run of one seed, the claim's difference over problems follows.
    """
    d = shown(v.difference, v.metric)
    least = "" if math.isnan(v.detectable) else f", detectable {number(v.detectable, v.metric)}"
    weights = f"; {over_problems[v.id]}" if v.id in over_problems else ""
    return f"d = {d}{least}, {plural(v.n, 'seed')}{weights}"
