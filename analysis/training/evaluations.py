"""Figures of evaluations during a stage (`evaluate_every` of a recipe), with a panel for each arm."""

from collections.abc import Iterator, Mapping
from functools import partial

import pandas as pd

from analysis.numbers.run import Run
from analysis.numbers.tasks import MEASURES, measure
from analysis.page.figures import Plan
from analysis.training.learning_curves import draw
from analysis.training.series import Series
from encore.recipe.kinds.training import TrainingStage

CAPTION = (
    "Measured on the evaluation's own problems by models kept on the way, not on the rollouts that train: "
    "where it falls while the reward rises, an earlier model is the better one."
)


def plans(run: Run, table: pd.DataFrame, palette: Mapping[str, str]) -> Iterator[Plan]:
    """Yield a figure for each task of each checkpoint that was also evaluated while its stage trained."""
    within = {arm: run.recipe.within(run.scale, arm).values() for arm in run.arms}
    for checkpoint in dict.fromkeys(name for of_arm in within.values() for name, _ in of_arm):
        arms = [arm for arm in run.arms if checkpoint in dict(within[arm])]
        rows = pd.concat([over_steps(run, table, arm, checkpoint) for arm in arms])
        for task in rows.metric.str.partition("/")[0].unique():
            name = measure(table, task)
            title = f"{MEASURES[name].capitalize()} on {task} by steps, checkpoint {checkpoint}"
            series = Series(
                f"evaluations-{checkpoint}-{task}", title, CAPTION, ((f"{task}/{name}", "", "-"),)
            )
            yield Plan(series.name, title, CAPTION, partial(draw, rows, series, palette))


def over_steps(run: Run, table: pd.DataFrame, arm: str, checkpoint: str) -> pd.DataFrame:
    """Return the rows of an arm's evaluations during the stage that makes a checkpoint, by column `step`.

    The checkpoint itself has the last step. The policy that the stage starts from has step 0; it is left out
    unless it is a checkpoint of the arm as well.
    """
    places = run.recipe.evals(run.scale, arm).checkpoints
    stage = places[checkpoint]
    trained = run.recipe.stage(run.scale, arm, stage)
    assert isinstance(trained, TrainingStage)
    last = trained.args.max_steps
    start = next((name for name, place in places.items() if place == f"{stage}.policy"), None)
    rows = table[table.arm == arm]
    between = rows[(rows.node == checkpoint) & rows.step.notna()]
    final = rows[rows.step.isna() & rows.metric.isin(between.metric)]
    ends = ((start, 0.0), (checkpoint, float(last)))
    parts = [between, *(final[final.node == node].assign(step=step) for node, step in ends)]
    return pd.concat([part for part in parts if len(part)] or [between])
