"""The comparison of a run with the curve that its recipe expects, and what to look at if they differ."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from analysis.numbers.reference_curves import Reference
from analysis.numbers.run import Run
from encore.recipe.expected import Expected

PASS, LOOK, OPEN = "Pass", "Look here", "Not yet"
BAND = "#222222"  # colour of the expected curve
# health checks that may explain a curve outside of the band, the likeliest cause first
CAUSES = ("sampler_gap", "ratio_at_start", "same_template", "verifier_fails", "truncation", "zero_variance")
FELL = (
    "It began as expected and fell behind: look at entropy and KL. The learning rate may be too large; one "
    "that suits bfloat16 weights is too large for float32 ones."
)
FLAT = (
    "It lies below from the first to the last: read the completions. Are right answers read as right, and "
    "does the prompt have the model's own chat template?"
)
LATE = "It gets there late: the learning rate may be too small, or an update may have too few responses."
ABOVE = (
    "That is no harm if accuracy on held-out problems rose as well. If it did not, the reward is being "
    "gamed: read the completions."
)


@dataclass(frozen=True)
class Outcome:
    """The outcome of a comparison with the expected curve, in words; `source` is the source of the curve."""

    heading: str  # PASS, LOOK or OPEN
    said: str
    source: str


def reference(expected: Expected) -> Reference:
    """Return the expected curve of a recipe as a Reference, its points in order of steps."""
    points = sorted((float(step), value) for step, value in expected.curve.items())
    return Reference(*map(np.array, zip(*points, strict=True)))


def outcome(run: Run, table: pd.DataFrame, health: pd.DataFrame) -> Outcome | None:
    """Return how the run compares with the curve that its scale expects.

    The result is None if the scale expects no curve, or if the run lacks the curve's arm. `table` has the
    learning curves, and `health` is a table of provenance.health.worst().
    """
    expected = run.document.scales[run.scale].expected
    arm = expected.of.partition("/")[0] if expected else ""
    if expected is None or arm not in run.arms:
        return None
    curve, what = reference(expected), f"{expected.metric} of {expected.of}"
    gaps = _gaps(table, expected, curve)  # (seeds, points)
    if not len(gaps):
        return Outcome(OPEN, f"Nothing is there yet to hold against the expected {what}.", expected.source)
    distances = np.nanmax(np.abs(gaps), axis=1)
    gap = gaps[distances.argmax()]  # the gaps of the seed that lies farthest away
    point, known = int(np.nanargmax(np.abs(gap))), np.flatnonzero(~np.isnan(gap))
    if abs(gap[point]) <= expected.margin:
        upto = f" up to step {curve.at[known[-1]]:g}" if known[-1] < len(gap) - 1 else ""
        text = f"{what} stays within {expected.margin:g} of the expected curve{upto}."
        return Outcome(PASS, text[0].upper() + text[1:], expected.source)
    side = "below" if gap[point] < 0 else "above"
    failed = int((distances > expected.margin).sum())
    seeds = f", with {failed} of {len(gaps)} seeds" if len(gaps) > 1 else ""
    text = (
        f"{what} lies {abs(gap[point]):.2g} {side} the expected curve near step {curve.at[point]:g}{seeds}, "
        f"where {expected.margin:g} is expected at most. {_cause(gap[known], expected, health)}"
    )
    return Outcome(LOOK, text[0].upper() + text[1:], expected.source)


def _gaps(table: pd.DataFrame, expected: Expected, curve: Reference) -> np.ndarray:
    """Return the run's curve minus the expected curve at the latter's points (seeds, points).

    A gap is nan where the run has no step near the point; seeds without any step near a point are left out.
    """
    arm, _, node = expected.of.partition("/")
    rows = table[(table.arm == arm) & (table.node == node) & (table.metric == expected.metric)]
    rows = rows[rows.step.notna() & rows.value.notna()].sort_values("step")
    near = [curve.near(of.step.to_numpy(), of.value.to_numpy()) for _, of in rows.groupby("seed")]
    gaps = [values - curve.value for values in near if not np.isnan(values).all()]
    return np.array(gaps)


def _cause(gap: np.ndarray, expected: Expected, health: pd.DataFrame) -> str:
    """Return a sentence on what to look at; `gap`: the run minus the expected curve (points,), no nan."""
    if gap[np.abs(gap).argmax()] > 0:
        return ABOVE
    arm, _, node = expected.of.partition("/")
    warned = health[(health.arm == arm) & (health.stage == node) & (health.state != "ok")]
    messages = dict(zip(warned.check, warned.message, strict=True))
    if check := next((check for check in CAUSES if check in messages), None):
        return f"A health check says: {messages[check]}."
    below = gap < -expected.margin
    if not below[0]:
        return FELL
    return FLAT if below[-1] else LATE


def bands(run: Run, metric: str, joined: pd.DataFrame) -> Mapping[str, tuple[Reference, float]]:
    """Return arm -> the expected curve of `metric`, and the margin around it.

    The expected curve is shifted to the steps of the arm's curve in `joined`, which learning_curves.of_rl()
    makes. The result is empty if no curve of this metric is expected.
    """
    expected = run.document.scales[run.scale].expected
    if expected is None or expected.metric != metric:
        return {}
    arm, _, node = expected.of.partition("/")
    of_arm = joined[joined.arm == arm]
    if node not in set(of_arm.node):
        return {}
    before = of_arm[(of_arm.node != node).cumprod().astype(bool)].step.max()
    curve = reference(expected)
    shifted = Reference(curve.at + (0.0 if np.isnan(before) else before), curve.value)
    return {arm: (shifted, expected.margin)}


def draw_band(axis: Axes, curve: Reference, margin: float) -> None:
    """Draw an expected curve and the band around it."""
    axis.fill_between(curve.at, curve.value - margin, curve.value + margin, color=BAND, alpha=0.1, lw=0)
    axis.plot(curve.at, curve.value, color=BAND, ls="--", lw=1.2)
