"""The figure of gold and proxy reward against the KL to the reference policy.

Each policy is a dot with intervals in both directions. A method is better than another if it has more gold
reward at the same KL. One dot for each method says little about that. So lines join arms that differ only in
one number (a swept coefficient), and the checkpoints of one arm.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from analysis.numbers.means import Mean, average, number
from analysis.numbers.table import measured
from analysis.page.style import square_root, stacked
from analysis.preferences.contenders import Contender

REWARDS = ("gold", "proxy")
GREY = "#6b6b6b"
MARKS = "osD^vPX<>*hp"
JOINED = ("-", "--", ":", "-.")


@dataclass(frozen=True)
class Place:
    """A policy's KL to the reference and its measured rewards, by name (REWARDS)."""

    contender: Contender
    kl: Mean
    rewards: dict[str, Mean]


def places(table: pd.DataFrame, task: str, among: Sequence[Contender]) -> list[Place]:
    """Return the KL and rewards of each contender that has a measured KL and a measured reward."""
    measured_places = []
    for contender in among:
        kl = average(measured(table, contender.at, f"{task}/kl"))
        rewards = {name: average(measured(table, contender.at, f"{task}/{name}")) for name in REWARDS}
        rewards = {name: mean for name, mean in rewards.items() if mean.n}
        if kl.n and rewards:
            measured_places.append(Place(contender, kl, rewards))
    return measured_places


def draw(
    places: Sequence[Place], sweeps: Mapping[str, Sequence[str]], palette: Mapping[str, str]
) -> Figure | None:
    """Draw a panel for gold reward above a panel for proxy reward.

    `sweeps` are sweeps.sweeps(). The result is None for fewer than three policies, or if arms share them all.
    """
    arms = [place.contender.arm for place in places if place.contender.last and not place.contender.shared]
    if len(places) < 3 or not arms:
        return None
    marks = {arm: MARKS[list(palette).index(arm) % len(MARKS)] for arm in arms}
    joined = {key: line for key, line in _lines(places, sweeps).items() if len(line) > 1}
    handles: list = [
        Line2D([], [], color=palette[arm], marker=marks[arm], ls="", ms=5.5, label=arm) for arm in arms
    ]
    dashes = {key: JOINED[i % len(JOINED)] for i, key in enumerate(joined)}
    handles += [
        Line2D([], [], color=GREY, ls=dashes[key], lw=1.2, label=f"over {short(key)}") for key in joined
    ]
    rewards = [name for name in REWARDS if any(name in place.rewards for place in places)]
    figure, axes = stacked(len(rewards), 2.3, handles)
    for axis, name in zip(axes, rewards, strict=True):
        measured = [place for place in places if name in place.rewards]
        for key, line in joined.items():
            _join(axis, [place for place in line if name in place.rewards], name, GREY, dashes[key])
        for arm in dict.fromkeys(place.contender.arm for place in measured):
            path = [place for place in measured if place.contender.arm == arm and not place.contender.shared]
            _join(axis, path, name, palette[arm], "-")
        for place in measured:
            _dot(axis, place, name, palette, marks)
        axis.margins(y=0.1)
        axis.set_ylabel(f"{name} reward", fontsize=9.5)
        axis.tick_params(labelsize=9)
    square_root(axes[-1], max(place.kl.ends[1] for place in places))
    axes[-1].set_xlabel("KL to the reference, nats a sequence", fontsize=9.5)
    return figure


def _lines(places: Sequence[Place], sweeps: Mapping[str, Sequence[str]]) -> dict[str, list[Place]]:
    last = {place.contender.arm: place for place in places if place.contender.last}
    return {key: [last[arm] for arm in arms if arm in last] for key, arms in sweeps.items()}


def _join(axis: Axes, line: Sequence[Place], name: str, colour: str, style: str) -> None:
    x = [max(place.kl.value, 0.0) for place in line]
    axis.plot(x, [place.rewards[name].value for place in line], color=colour, lw=1.1, ls=style, zorder=1.5)


def _dot(axis: Axes, place: Place, name: str, palette: Mapping[str, str], marks: Mapping[str, str]) -> None:
    contender, reward = place.contender, place.rewards[name]
    x = max(place.kl.value, 0.0)
    colour = GREY if contender.shared else palette[contender.arm]
    mark = "." if contender.shared or not contender.last else marks[contender.arm]
    (left, right), (low, high) = place.kl.ends, reward.ends
    axis.plot([max(left, 0.0), right], [reward.value] * 2, color=colour, lw=1, alpha=0.7)
    axis.plot([x, x], [low, high], color=colour, lw=1, alpha=0.7)
    axis.plot(x, reward.value, mark, color=colour, ms=8 if mark == "." else 5.5, clip_on=False)
    if contender.shared:
        axis.annotate(
            contender.name, (x, reward.value), (4, 2), textcoords="offset points", va="bottom", fontsize=9,
            color=GREY,
        )  # fmt: skip


def short(key: str) -> str:
    """Return a short name of a setting: `ppo kl_coef` for `ppo.args.kl_coef`."""
    parts = [part for part in key.split(".") if part != "args"]
    return " ".join(parts[:1] + parts[-1:]) if len(parts) > 1 else key


def alt_text(places: Sequence[Place]) -> str:
    """Return the gold reward and KL of every policy in words."""
    return "; ".join(
        f"{at.contender.name}: gold {number(at.rewards['gold'].value)} at a KL of {number(at.kl.value)}"
        for at in places
        if "gold" in at.rewards
    )
