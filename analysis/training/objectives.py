"""Which loss each arm's RL stages minimised, by their resolved configs, and how exactly it is the paper's."""

from pathlib import Path

import pandas as pd

from analysis.numbers.means import DASH
from analysis.numbers.run import Run
from analysis.training.loss_settings import clip_bounds, described, name
from encore.recipe.graph import Node
from encore.recipe.kinds.grpo import GrpoStage
from encore.runtime import suite

RL = ("grpo", "policy_gradient", "bandit", "ppo", "dpo")  # stage kinds
CONFORMANCE = "results/published/conformance.csv"


def stages(run: Run, arm: str, seed: int) -> list[Node]:
    """The owners of an arm's RL stages, upstream first."""
    return run.stages(arm, seed, *RL)


def clip_range(run: Run, arm: str) -> tuple[float, float] | None:
    """The ratios at which the last RL stage of an arm clips, 0: never; None where nothing is clipped."""
    nodes = stages(run, arm, run.seeds[0])
    return clip_bounds(run.graph.stage(nodes[-1])) if nodes else None


def optimised(run: Run) -> pd.DataFrame:
    """One row an arm and RL stage, with what defines its loss; empty where no arm has such a stage."""
    rows: list[dict[str, str]] = []
    for arm in run.arms:
        nodes = stages(run, arm, run.seeds[0])
        if not nodes:
            own = (node for node in run.stages(arm, run.seeds[0]) if node.recipe == run.name)
            kinds = dict.fromkeys(run.graph.stage(node).run for node in own)
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
    """The same, with one row for all arms that minimise the same loss."""
    if not len(frame):
        return frame
    settings = [column for column in frame.columns if column != "arm"]
    return frame.groupby(settings, sort=False).arm.agg(", ".join).reset_index()[["arm", *settings]]


def conformance(run: Run) -> pd.DataFrame:
    """The rows of the conformance table for the objectives of the run's stages; empty without them."""
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
