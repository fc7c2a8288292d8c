"""Claims judged on made-up numbers."""

import math
from collections.abc import Sequence

import pandas as pd

from analysis.numbers.table import COLUMNS
from analysis.verdicts.claims import Verdict
from analysis.verdicts.judge import judge_looks

CLAIM = {
    "id": "gain",
    "says": "It helps.",
    "source": "Fig. 1",
    "metric": "heldout/accuracy",
    "of": "base-recipe/after",
    "against": "base-recipe/before",
    "direction": "higher",
    "margin": 0.1,
}


def table(after: Sequence[float], before: Sequence[float], shared: bool = False) -> pd.DataFrame:
    """Rows of one arm, one value a seed; `shared`: every seed read the same artefacts."""
    rows = []
    for node, column in (("after", after), ("before", before)):
        for seed, value in enumerate(column):
            source = f"{node}-{0 if shared else seed}"
            where = ["toy", "cpu", "base-recipe", seed, node, math.nan, "heldout/accuracy"]
            rows.append([*where, value, math.nan, math.nan, source])
    return pd.DataFrame(rows, columns=COLUMNS)


def judge(after, before=0.0, seeds=None, scale="cpu", shared=False, **changes) -> Verdict:
    """The verdict on CLAIM with these changes; `before` may be one number for all seeds."""
    before = [before] * len(after) if isinstance(before, float) else before
    seeds = range(len(after)) if seeds is None else seeds
    return judge_looks([CLAIM | changes], table(after, before, shared), scale, seeds)[-1][0]
