"""Over-optimisation: gold and proxy reward against the distance from the initial policy.

For RL, the distance and the rewards are the curves of `ppo` stages. For best-of-n, they come from an
evaluation of the initial policy: of n samples of each item, the one with the highest proxy is chosen. A gain
is the reward minus the reward of the initial policy: for RL the mean of an arm's first logged rollouts over
all seeds, for best-of-n the reward at n = 1. The mean of few rollouts is uncertain, and its error shifts
every gain of the arm, so weights that are fitted to one seed are rough.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.numbers.curve_metrics import CURVES, KL
from analysis.numbers.means import DASH, MINUS, average, number, with_interval
from analysis.numbers.run import Run
from analysis.numbers.table import binned, measured
from analysis.page.style import dashes, stacked
from analysis.preferences import reward_fits
from analysis.preferences.contenders import Contender, in_arm
from analysis.preferences.reward_fits import Fit
from analysis.statistics.intervals import interval

POINTS = 40  # largest number of points of a curve; if it has more, neighbouring rollouts are averaged
FEW = 4  # largest number of arms with which each seed has a thin line
OWN = {"RL": "rl", "best-of-n": "bon"}  # how the policy moved -> the form that Gao et al. have for it
BEST = re.compile(r"(?P<task>[^/]+)/(?P<reward>gold|proxy)/bon@(?P<n>\d+)")
BLACK = "#333333"


@dataclass(frozen=True)
class Track:
    """The gain in one reward at each distance d from the initial policy: mean over seeds, and each seed."""

    arm: str
    by: str  # how the policy moved: RL or best-of-n
    reward: str  # gold or proxy
    d: np.ndarray  # (points,) sqrt(KL to the initial policy), KL in nats per sequence
    gain: np.ndarray  # (points,) mean over seeds
    low: np.ndarray  # (points,) lower end of the interval of the gain; nan without an interval
    high: np.ndarray
    seeds: tuple[tuple[np.ndarray, np.ndarray], ...]  # d (points,) and gain (points,) of each seed


def of_training(run: Run, table: pd.DataFrame) -> list[Track]:
    """Return the tracks of gold and proxy over each arm's first `ppo` stage; arms that share it have one.

    Later stages are left out, because their KL and gains would be relative to another policy.
    """
    names = [KL, *CURVES.values()]
    logged = table[table.step.notna() & table.metric.isin(names)].dropna(subset=["value"])
    tracks, seen = [], set()
    for arm in run.arms:
        curve = logged[(logged.arm == arm) & (logged.node == _first_ppo(run, arm))]
        key = tuple(sorted(curve.source.unique()))
        if not len(curve) or key in seen:
            continue
        seen.add(key)
        distance = binned(curve[curve.metric == KL], POINTS)
        for reward, metric in CURVES.items():
            rows = curve[curve.metric == metric]
            values = binned(rows, POINTS)
            steps = distance.index.intersection(values.index)
            if not len(steps):
                continue
            start = rows.value[rows.step == rows.step.min()].mean()
            kl, gains = distance.loc[steps], values.loc[steps] - start
            seeds = [(_root(kl[seed]), gains[seed].to_numpy()) for seed in gains.columns if seed in kl]
            nan = np.full(len(steps), np.nan)
            tracks.append(
                Track(arm, "RL", reward, _root(kl.mean(axis=1)), gains.mean(axis=1).to_numpy(), nan, nan,
                      tuple(seeds))
            )  # fmt: skip
    return tracks


def _first_ppo(run: Run, arm: str) -> str:
    return next((run.label(node) for node in run.stages(arm, run.seeds[0], "ppo")), "")


def _root(kl: pd.Series) -> np.ndarray:
    return np.sqrt(kl.clip(lower=0).to_numpy())  # k1 may be below 0 if the policy has hardly moved


def of_best_of_n(run: Run, table: pd.DataFrame, initial: Contender | None) -> list[Track]:
    """Return the tracks of gold and proxy for the best of n samples of the policy `initial`, by each proxy.

    If several tasks have best-of-n, the task with the largest n counts.
    """
    tracks: list[Track] = []
    seen = set()
    if initial is None:
        return tracks
    for arm in run.arms:
        checkpoint = in_arm(run, initial, arm).checkpoint
        metrics = table[(table.arm == arm) & (table.node == checkpoint)].metric.unique()
        drawn = [match for metric in metrics if (match := BEST.fullmatch(str(metric)))]
        if not drawn:
            continue
        task = max(drawn, key=lambda match: int(match["n"]))["task"]
        for reward in CURVES:
            at, prefix = f"{arm}/{checkpoint}", f"{task}/{reward}/bon@"
            counts = sorted(int(m["n"]) for m in drawn if (m["task"], m["reward"]) == (task, reward))
            by_n = {n: measured(table, at, f"{prefix}{n}") for n in counts if n > 1}
            start = measured(table, at, f"{prefix}1" if 1 in counts else f"{task}/{reward}")
            key = (reward, *sorted(start.source.unique()))
            if not by_n or not len(start) or key in seen:
                continue
            seen.add(key)
            d = np.array([math.sqrt(reward_fits.best_of_n_kl(n)) for n in by_n])
            gains = {n: _less(rows, start) for n, rows in by_n.items()}
            means = [average(gain) for gain in gains.values()]
            columns = pd.DataFrame({n: g.drop_duplicates("source").value for n, g in gains.items()})
            tracks.append(
                Track(
                    arm, "best-of-n", reward, d, np.array([m.value for m in means]),
                    np.array([m.low for m in means]), np.array([m.high for m in means]),
                    tuple((d, row) for row in columns.to_numpy()),
                )
            )  # fmt: skip
    return tracks


def _less(rows: pd.DataFrame, start: pd.DataFrame) -> pd.DataFrame:
    """Return the values and intervals in `rows` minus the value of the same seed in `start`.

    Both are tables of measured().
    """
    shift = start.value.reindex(rows.index)
    return rows.assign(**{column: rows[column] - shift for column in ("value", "low", "high")})


def fits(tracks: Sequence[Track]) -> pd.DataFrame:
    """Return a row for each track and form of reward_fits.FORMS.

    `alpha` and `beta` are means over seeds, each of which is fitted separately, with intervals.
    `highest_at_kl` is the KL at which the form with these weights is highest. `r2` and `r2_held_out` are of
    the fit to the mean over seeds: on all points, and by reward_fits.held_out().
    """
    rows = []
    for track in tracks:
        for form in reward_fits.FORMS:
            fitted = reward_fits.fit(form, track.d, track.gain)
            if fitted is None:
                continue
            row: dict = {"arm": track.arm, "by": track.by, "reward": track.reward, "form": form}
            alone = [
                fit_of_seed for d, gain in track.seeds if (fit_of_seed := reward_fits.fit(form, d, gain))
            ]
            several = len(alone) > 1
            mean = (
                Fit(form, tuple(np.mean([fit_of_seed.weights for fit_of_seed in alone], axis=0)))
                if several
                else fitted
            )
            for name in ("alpha", "beta"):
                values = [getattr(fit_of_seed, name) for fit_of_seed in alone]
                known = several and not math.isnan(values[0])
                low, high = interval(values) if known else (math.nan, math.nan)
                row |= {name: getattr(mean, name), f"{name}_low": low, f"{name}_high": high}
            row |= {
                "highest_at_kl": _highest(mean, float(track.d.max())) ** 2,
                "r2": reward_fits.r_squared(fitted, track.d, track.gain),
                "r2_held_out": reward_fits.held_out(form, track.d, track.gain),
                "points": int((track.d > 0).sum()),
                "largest_kl": float(track.d.max() ** 2),
                "seeds": len(track.seeds),
            }
            rows.append(row)
    return pd.DataFrame(rows)


def _highest(form: Fit, reached: float) -> float:
    """Return the d at which a form is highest: 0 if it only falls; nan if it only rises, or is a cubic.

    `reached` is the largest d of the points.
    """
    falls = math.isnan(form.top) and not math.isnan(form.alpha) and form(np.array([reached]))[0] < 0
    return 0.0 if falls else form.top


def fits_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of fits() for readers, a row for each track.

    It has the weights of the track's own form (OWN), and the held-out R^2 of every form.
    """
    rows = []
    for key, group in frame.groupby(["arm", "by", "reward"], sort=False) if len(frame) else ():
        arm, by, reward = map(str, key)
        main_form = group[group.form == OWN[by]]
        if not len(main_form):
            continue
        entry = main_form.iloc[0]
        row = {"arm": arm, "moved by": by, "reward": reward}
        for name, letter in (("alpha", reward_fits.ALPHA), ("beta", reward_fits.BETA)):
            row[letter] = with_interval(entry[name], entry[f"{name}_low"], entry[f"{name}_high"])
        row["highest at KL"] = _nats(entry["highest_at_kl"], entry["largest_kl"])
        held = group.set_index("form").r2_held_out
        order = [OWN[by], *(form for form in reward_fits.FORMS if form != OWN[by])]
        row |= {f"R² {_short(form, OWN[by])}": _r2(held.get(form, math.nan)) for form in order}
        rows.append(row)
    return pd.DataFrame(rows).fillna(DASH)


def _short(form: str, main_form: str) -> str:
    return "this form" if form == main_form else "other form" if form in OWN.values() else form


def _nats(top: float, reached: float) -> str:
    if math.isnan(top):
        return "rises on"
    return f"{top:.2g}" if top <= reached else f"beyond {reached:.2g}"


def _r2(value: float) -> str:
    return number(value) if math.isnan(value) or value > -10 else f"< {MINUS}10"


def draw(tracks: Sequence[Track], palette: Mapping[str, str], beside: Sequence[Track] = ()) -> Figure | None:
    """Draw the gain in gold above the gain in proxy, both against d, with the fitted form as a dotted line.

    `beside` are further tracks, which are drawn as black crosses. The result is None without tracks.
    """
    rewards = [reward for reward in CURVES if any(track.reward == reward for track in tracks)]
    if not rewards:
        return None
    arms = list(dict.fromkeys(track.arm for track in tracks))
    styles = dashes(list(palette))
    handles: list = [Line2D([], [], color=palette[arm], ls=styles[arm], lw=1.8, label=arm) for arm in arms]
    handles.append(Line2D([], [], color=BLACK, lw=1.2, ls=":", label="fitted form"))
    if beside:
        name = f"{beside[0].by}, {beside[0].arm}"
        handles.append(Line2D([], [], color=BLACK, ls="", marker="x", ms=5, label=name))
    figure, axes = stacked(len(rewards), 2.1, handles)
    for axis, reward in zip(axes, rewards, strict=True):
        axis.axhline(0, color="#888888", lw=0.8)
        for track in (track for track in tracks if track.reward == reward):
            _track(axis, track, palette[track.arm], styles[track.arm], len(arms) <= FEW)
        for track in (track for track in beside if track.reward == reward):
            axis.plot(track.d, track.gain, "x", color=BLACK, ms=5, zorder=3.5)
        axis.set_ylabel(f"{reward} reward gained", fontsize=9.5)
        axis.tick_params(labelsize=9)
    axes[-1].set_xlabel("√KL to the initial policy, nats a sequence", fontsize=9.5)
    axes[-1].set_xlim(left=0)
    return figure


def _track(axis: Axes, track: Track, colour: str, style: Any, seeds: bool) -> None:
    order = np.argsort(track.d, kind="stable") if track.by == "best-of-n" else np.arange(len(track.d))
    if seeds and track.by == "RL":
        for d, gain in track.seeds:
            axis.plot(d, gain, color=colour, lw=0.5, alpha=0.4)
    axis.plot(track.d[order], track.gain[order], color=colour, lw=1.6, ls=style)
    if track.by == "best-of-n":
        ends = np.abs(np.stack([track.gain - track.low, track.high - track.gain]))
        axis.errorbar(track.d, track.gain, yerr=np.nan_to_num(ends), color=colour, fmt="o", ms=3.5, lw=1.2)
    if fitted := reward_fits.fit(OWN[track.by], track.d, track.gain):
        d = np.linspace(track.d.max() / 200, track.d.max(), 200)
        axis.plot(d, fitted(d), color=BLACK, lw=1.1, ls=":", zorder=3)


def form_of(tracks: Sequence[Track]) -> str:
    """Return the formula of the form that is fitted to these tracks; "" without tracks."""
    return reward_fits.WRITTEN[OWN[tracks[0].by]] if tracks else ""


def alt_text(tracks: Sequence[Track]) -> str:
    """Return the last and the largest gain in gold of each track in words."""
    return "; ".join(
        f"{track.arm}: gold {number(track.gain[-1])} above the start at a KL of {track.d[-1] ** 2:.2g}, "
        f"at most {number(float(track.gain.max()))}"
        for track in tracks
        if track.reward == "gold"
    )
