"""The curves of a ladder's stages on one axis: the updates that the policy went through, added up."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.numbers.run import Run
from analysis.stage_ladder.steps import Step, made

CURVE = ["seed", "step", "metric", "value"]


@dataclass(frozen=True)
class Segment:
    """What one stage logged. It starts where the last of the steps ends that its own step is built on.

    A step that branches off starts beside another, as R1-Zero beside the cold start of R1.
    """

    step: str  # of the ladder
    stage: str
    start: float  # updates
    end: float
    rows: pd.DataFrame  # columns CURVE; `step` counts from `start` on


@dataclass(frozen=True)
class Climb:
    segments: tuple[Segment, ...]
    ends: dict[str, float]  # step of the ladder -> updates that it has behind it
    chain: tuple[str, ...]  # the steps that the last one is built on, and itself

    @property
    def boundaries(self) -> list[float]:
        """Where one step of the chain ends and the next begins."""
        return sorted({self.ends[name] for name in self.chain[:-1]} - {0.0})


def climb(run: Run, table: pd.DataFrame, ladder: Sequence[Step]) -> Climb:
    """The segments of all steps, in the ladder's order; stages without a curve take no room."""
    logged = {str(source): rows for source, rows in table[table.step.notna()].groupby("source")}
    by_seed = {seed: made(run, ladder, seed) for seed in run.seeds}
    first = by_seed[run.seeds[0]]
    segments: list[Segment] = []
    ends: dict[str, float] = {}
    for step in ladder:
        at = max((ends[name] for name in first[step.name].after), default=0.0)
        for place, node in enumerate(first[step.name].trained):
            rows = _rows(
                logged, {seed: by[step.name].trained[place].sentinel for seed, by in by_seed.items()}
            )
            if len(rows):
                end = at + float(rows.step.max())
                rows = rows.assign(step=rows.step + at)
                segments.append(Segment(step.name, run.label(node), at, end, rows))
                at = end
        ends[step.name] = at
    chain = (*first[ladder[-1].name].after, ladder[-1].name) if ladder else ()
    return Climb(tuple(segments), ends, chain)


def _rows(logged: dict[str, pd.DataFrame], sources: dict[int, str]) -> pd.DataFrame:
    """The curves of one stage, a model that seeds share once."""
    once = {source: seed for seed, source in reversed(sources.items()) if source in logged}
    parts = [logged[source].drop_duplicates(["step", "metric"]).assign(seed=seed)[CURVE]
             for source, seed in sorted(once.items(), key=lambda pair: pair[1])]  # fmt: skip
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=CURVE)
