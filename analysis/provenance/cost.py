"""What a run cost: time, as planned and as taken, tokens and FLOPs of every stage."""

import math

import pandas as pd

from analysis.numbers.means import DASH, duration, power


def cost(jobs: pd.DataFrame) -> pd.DataFrame:
    """What each stage of each arm cost, summed over seeds, and the total. What is shared counts once."""
    numeric = ["wall_s", "planned_s", "tokens", "flops"]
    amounts = jobs[["arm", "stage", *numeric]].copy()
    amounts[numeric] = amounts[numeric].apply(pd.to_numeric, errors="coerce")
    groups = amounts.groupby(["stage", "arm"], sort=False)
    frame = groups[numeric].sum().assign(runs=groups.size()).reset_index()
    total = {"stage": "all", "arm": "", "runs": len(amounts)} | amounts[numeric].sum().to_dict()
    frame = pd.concat([frame, pd.DataFrame([total])], ignore_index=True)
    frame["tokens_per_s"] = frame.tokens / frame.wall_s.where(frame.wall_s > 0)
    return frame[["stage", "arm", "runs", "wall_s", "planned_s", "tokens", "tokens_per_s", "flops"]]


def cost_shown(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "stage": frame.stage,
            "arm": frame.arm,
            "runs": frame.runs,
            "wall-clock": frame.wall_s.map(duration),
            "planned": frame.planned_s.map(lambda s: duration(s) if s else DASH),
            "of plan": [
                f"{s / p:.2f}" if p else DASH for s, p in zip(frame.wall_s, frame.planned_s, strict=True)
            ],
            "tokens": frame.tokens.map(lambda n: f"{n:,.0f}"),
            "tokens/s": frame.tokens_per_s.map(lambda n: DASH if math.isnan(n) else f"{n:,.0f}"),
            "FLOPs (estimate)": frame.flops.map(power),
        }
    )
