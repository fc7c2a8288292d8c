"""The losses that the arms' RL stages minimised, and how exactly each loss agrees with its paper."""

from pathlib import Path

import pandas as pd

from analysis.numbers.means import DASH
from analysis.numbers.run import Run
from analysis.training.loss_settings import clip_bounds, described
from analysis.training.objective_names import name
from encore.recipe.graph import Node
from encore.recipe.kinds.grpo import GrpoStage
from encore.runtime import suite

# kinds of stages that learn from rewards, preferences or a teacher
RL = ("grpo", "policy_gradient", "bandit", "ppo", "dpo", "kto", "distillation")
CONFORMANCE = "results/published/conformance.csv"


def stages(run: Run, arm: str, seed: int) -> list[Node]:
    """Return the nodes of an arm's RL stages, the earliest first."""
    return run.stages(arm, seed, *RL)


def clip_range(run: Run, arm: str) -> tuple[float, float] | None:
    """Return the lower and upper ratio at which the arm's last RL stage clips; None if it does not clip."""
    nodes = stages(run, arm, run.seeds[0])
    return clip_bounds(run.graph.stage(nodes[-1])) if nodes else None


def optimised(run: Run) -> pd.DataFrame:
    """Return a row for each RL stage of each arm with the settings of its loss.

    The frame is empty if no arm has an RL stage.
    """
    rows: list[dict[str, str]] = []
    for arm in run.arms:
        nodes = stages(run, arm, run.seeds[0])
        if not nodes:
            others = (node for node in run.stages(arm, run.seeds[0]) if node.recipe == run.name)
            kinds = dict.fromkeys(run.graph.stage(node).run for node in others)
            rows.append({"arm": arm, "objective": ", ".join(kinds)})
        for node in nodes:
            place = arm + (f"/{run.label(node)}" if len(nodes) > 1 else "")
            rows.append({"arm": place} | described(run.graph.stage(node)))
    if not any("ratio" in row for row in rows):
        return pd.DataFrame()
    frame = pd.DataFrame(rows).fillna(DASH)
    first = list(next(row for row in rows if "ratio" in row))  # the order of columns
    return frame[[column for column in first if column != "also" or (frame[column] != DASH).any()]]


def grouped(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of optimised() with a single row for all arms that minimise the same loss."""
    if not len(frame):
        return frame
    settings = [column for column in frame.columns if column != "arm"]
    return frame.groupby(settings, sort=False).arm.agg(", ".join).reset_index()[["arm", *settings]]


def conformance(run: Run) -> pd.DataFrame:
    """Return the rows of the file CONFORMANCE on the run's objectives; no row if the file is missing."""
    path = suite.folder(run.root) / CONFORMANCE
    names: set[str] = set()
    for arm in run.arms:
        for node in stages(run, arm, run.seeds[0]):
            stage = run.graph.stage(node)
            names.add(name(stage) if isinstance(stage, GrpoStage) else stage.run)
    rows = _rows(path)
    return rows.loc[rows.objective.isin(names)].reset_index(drop=True)


def _rows(path: Path) -> pd.DataFrame:
    columns = ["objective", "property", "status", "size", "note"]
    if not path.exists():
        return pd.DataFrame(columns=columns)
    return pd.read_csv(path, dtype=str, keep_default_na=False).loc[:, columns]
