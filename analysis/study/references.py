"""Published curves, and how far our curves lie from them.

A claim with `reference` names a CSV with two columns, the axis and `value`, and states that our curve stays
within a band around the published one. The distance of a run is the largest distance, to either side, at any
point that the run has reached (analysis.numbers.reference_curves).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.numbers.reference_curves import Reference
from analysis.page.palette import PALETTE
from analysis.page.style import stacked
from analysis.study.document import STEP, StudyClaim
from encore.errors import UserError, first_line, nearest

BLACK = "#222222"
LARGEST = 1 << 24  # bytes of the largest file of a published curve that is read


@dataclass(frozen=True)
class Overlay:
    """A published curve and ours; `ours`: seed -> its values at the points of the published curve."""

    claim: StudyClaim
    reference: Reference
    ours: Mapping[int, np.ndarray]

    @property
    def distances(self) -> dict[int, float]:
        """The largest distance of each seed's curve from the published curve, by seed."""
        return {
            seed: float(np.nanmax(np.abs(values - self.reference.value)))
            for seed, values in self.ours.items()
        }


def load(path: Path, axis: str) -> Reference:
    """Read a published curve. Raises UserError if it is no CSV of numbers with columns `axis` and value."""
    try:
        if path.stat().st_size > LARGEST:
            raise UserError(f"{path}: a reference of more than {LARGEST:,} bytes is not read")
        frame = pd.read_csv(path, comment="#")
    except (OSError, ValueError, pd.errors.ParserError) as error:
        raise UserError(f"{path}: not a CSV: {first_line(error)}") from None
    for name in (axis, "value"):
        if name not in frame.columns:
            raise UserError(
                f'{path}: no column "{name}"{nearest(name, [str(name) for name in frame.columns])}'
            )
    points = frame[[axis, "value"]].apply(pd.to_numeric, errors="coerce").sort_values(axis)
    if not np.isfinite(points.to_numpy()).all():
        raise UserError(f"{path}: expected finite numbers in the columns {axis} and value")
    if len(points) < 2 or points[axis].duplicated().any():
        raise UserError(f"{path}: expected two points or more, each at a {axis} of its own")
    return Reference(points[axis].to_numpy(float), points.value.to_numpy(float))


def overlay(
    claim: StudyClaim, folder: Path, curves: Mapping[int, pd.DataFrame], axes: Mapping[int, pd.DataFrame]
) -> tuple[Overlay, list[str]]:
    """Return our curves at the points of a claim's published curve, and notes on seeds that are left out.

    `curves`: seed -> its curve by rising step, with the columns step and value. `axes`: seed -> the curve of
    the metric that is the claim's axis, in the same form; empty if the axis is the step.
    """
    reference = load(folder / str(claim.reference), claim.axis)
    notes, ours, ends = [], {}, []
    last = max((rows.step.iloc[-1] for rows in curves.values()), default=0.0)
    for seed, rows in sorted(curves.items()):
        at = rows.step
        if claim.axis != STEP:
            at = axes[seed].set_index("step").value.reindex(rows.step) if seed in axes else at * np.nan
        x, y = at.to_numpy(float)[at.notna()], rows.value.to_numpy(float)[at.notna()]
        near = reference.near(x, y)
        run = f"{claim.test.of}, seed {seed}"
        if rows.step.iloc[-1] < last:
            notes.append(f"{run} ended at step {rows.step.iloc[-1]:g} of {last:g}: left out")
        elif not np.isfinite(y).all():
            notes.append(f"{run} is not finite everywhere: left out")
        elif (np.diff(x) < 0).any():
            notes.append(f"{run}: {claim.axis} falls from one step to a later one: left out")
        elif np.isnan(near).all():
            notes.append(f"{run} has nothing near {claim.reference} on the axis {claim.axis}: left out")
        else:
            ours[seed] = near
            ends.append(x[-1])
    if ends and max(ends) < reference.at[-1]:
        span = f"our runs end at {claim.axis} {max(ends):g} of {reference.at[-1]:g}"
        notes.append(f"{claim.test.of}: {span}: {claim.reference} is compared up to there")
    return Overlay(claim, reference, ours), notes


def draw(overlay: Overlay) -> Figure:
    """Draw the published curve with its band, and our curve for each seed."""
    claim, reference = overlay.claim, overlay.reference
    low, high = reference.value - claim.test.margin, reference.value + claim.test.margin
    handles = [
        Line2D([], [], color=BLACK, ls="--", lw=1.6, label="published, with the band"),
        Line2D([], [], color=PALETTE[0], lw=1.2, label=f"ours: {len(overlay.ours)} seeds"),
    ]
    figure, (axis,) = stacked(1, 2.3, handles)
    axis.fill_between(reference.at, low, high, color=BLACK, alpha=0.1, lw=0)
    for values in overlay.ours.values():
        known = ~np.isnan(values)
        axis.plot(reference.at[known], values[known], color=PALETTE[0], lw=1.0, alpha=0.7)
    axis.plot(reference.at, reference.value, color=BLACK, ls="--", lw=1.6)
    axis.set_xlabel(claim.axis.replace("$", r"\$"))
    axis.set_ylabel(claim.test.metric.partition("/")[2].replace("$", r"\$"))
    return figure
