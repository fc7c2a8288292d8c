"""The cost of a run: the planned and measured time, tokens, and FLOPs of every stage."""

import math

import pandas as pd

from analysis.numbers.means import DASH, duration, power
from analysis.numbers.run import Run


def _planned(run: Run, trained: pd.DataFrame) -> list[float]:
    """Return the planned seconds of each stage in `trained`, on the GPUs that it ran on; 0 without a plan."""
    if not len(trained):
        return []
    from encore.forecast import plan  # imported here, because torch takes seconds and most pages need no plan

    rows = zip(trained.arm, trained.seed, trained.stage, trained.hardware, strict=True)
    return [
        plan.seconds(run.graph, run.stage(arm, seed, label), " ".join(map(str, hardware.get("gpus", []))))
        for arm, seed, label, hardware in rows
    ]


def cost(run: Run, trained: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each stage of each arm, with its cost over all seeds, and a last row with the total.

    `trained` is the table of provenance.jobs. Work that arms share counts once. The time is the median over
    runs times the number of runs, because the time of a paused run includes the pause.
    """
    numeric = ["wall_s", "cpu_s", "planned_s", "tokens", "flops"]
    amounts = trained.assign(planned_s=_planned(run, trained))[["arm", "stage", *numeric]]
    amounts[numeric] = amounts[numeric].apply(pd.to_numeric, errors="coerce")
    groups = amounts.groupby(["stage", "arm"], sort=False)
    wall = groups["wall_s"].median() * groups["wall_s"].count()
    frame = groups[numeric].sum().assign(runs=groups.size(), wall_s=wall).reset_index()
    total = {"stage": "all", "arm": "", "runs": len(amounts)} | frame[numeric].sum().to_dict()
    frame = pd.concat([frame, pd.DataFrame([total])], ignore_index=True)
    frame["tokens_per_s"] = frame.tokens / frame.wall_s.where(frame.wall_s > 0)
    return frame[["stage", "arm", "runs", "wall_s", "cpu_s", "planned_s", "tokens", "tokens_per_s", "flops"]]


def elapsed(trained: pd.DataFrame) -> float:
    """Return the seconds during which at least one stage ran; parallel jobs count once, gaps not at all."""
    begun = pd.to_datetime(trained.started, utc=True, errors="coerce")
    spans = pd.DataFrame({"begun": begun, "wall": pd.to_numeric(trained.wall_s, errors="coerce")}).dropna()
    total, until = 0.0, -math.inf
    for start, wall in sorted((row["begun"].timestamp(), row["wall"]) for row in spans.to_dict("records")):
        end = start + wall
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total


def of_a_seed(run: Run, trained: pd.DataFrame) -> dict[str, float]:
    """Return id of a claim -> the estimated seconds of one more seed of the arms that it compares.

    Work that the arms share counts once. Evaluations are left out, because they record no time.
    """
    walls = trained.assign(wall_s=pd.to_numeric(trained.wall_s, errors="coerce"))
    medians = walls.groupby(["arm", "stage"])["wall_s"].median().to_dict()
    stages = {
        arm: {(node.arm, run.label(node)) for node in run.nodes(arm, run.seeds[0]) if node.kind == "stage"}
        for arm in run.arms
    }
    seconds = {}
    for claim in run.recipe.claims(run.scale):
        arms = run.document.arms_of(claim) & set(stages)
        needed = {stage for arm in arms for stage in stages[arm]}
        seconds[claim.id] = sum(medians.get(stage, 0.0) for stage in needed)
    return seconds


def cost_shown(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "stage": frame.stage,
            "arm": frame.arm,
            "runs": frame.runs,
            "time, median run by runs": frame.wall_s.map(duration),
            "planned": frame.planned_s.map(lambda s: duration(s) if s else DASH),
            "of plan": [
                f"{s / p:.2f}" if p else DASH for s, p in zip(frame.wall_s, frame.planned_s, strict=True)
            ],
            "tokens": frame.tokens.map(lambda n: f"{n:,.0f}"),
            "tokens/s": frame.tokens_per_s.map(lambda n: DASH if math.isnan(n) else f"{n:,.0f}"),
            "FLOPs (estimate)": frame.flops.map(power),
        }
    )
