"""What the decision rule does where the truth is known: how often it is wrong, and what it finds.

    python tests/conformance/decision_rule.py --out results/published/decision_rule.csv

Families of claims `higher` are drawn: each compares an arm of its own with one base arm that all share,
over 32 seeds, and is judged at the planned looks by verdicts.statements. A claim stops at the look that
decides it. All effects are in standard deviations of a seed's difference. The margin is 0.2: at that true
effect `reproduced` and `weaker than claimed` are both wrong, and as often as they ever are; `contradicted`
is so at 0, and `no difference` at the smallest effect that matters.
"""

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from analysis.verdicts.statements import STATEMENTS, adjusted, p_values, shown
from encore.recipe.looks import LOOKS

MARGIN = 0.2
COLLAPSE, DEPTH = 0.15, 5.0  # share of runs that collapse, and how far
Law = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_normal(shape)


def _heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_t(3, shape) / np.sqrt(3)


def _skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.exponential(size=shape) - 1


LAWS: dict[str, Law] = {"normal": _normal, "heavy tails (t, 3 df)": _heavy, "skewed (exponential)": _skewed}


class Setting(NamedTuple):
    """A family: how its seeds vary, how many claims of each kind, and their true effects."""

    law: str
    collapses: str  # "" | every arm | treated arms | base arm
    primary: int
    secondary: int
    effect: float  # of the first claim of each kind
    others: float  # of the others
    matters: float = MARGIN  # the smallest effect that does; 0.2 is too small to be excluded with 32 seeds


def rates(setting: Setting, families: int, seed: int = 0) -> dict[str, float]:
    """How often each verdict is given to the claims that have the true effect `setting.effect`.

    "<verdict>": the share of those claims that got it; "any <verdict>, primary" (secondary): the share of
    families in which any of them did; "seeds": the mean number of seeds at which they were decided, or 32.
    """
    rng = np.random.default_rng(seed)
    differences, withheld = _draw(rng, setting, families)
    primary = _primary(setting)
    verdicts, seeds = judge(differences, withheld, primary, setting.matters)
    counted = _effects(setting) == setting.effect
    found = {"seeds": float(seeds[:, counted].mean())}
    for name, given in verdicts.items():
        found[name] = float(given[:, counted].mean())
        for kind, among in (("primary", primary & counted), ("secondary", ~primary & counted)):
            if among.any():
                found[f"any {name}, {kind}"] = float(given[:, among].any(axis=1).mean())
    return found


def _primary(setting: Setting) -> np.ndarray:
    return np.arange(setting.primary + setting.secondary) < setting.primary


def _effects(setting: Setting) -> np.ndarray:
    """True effects (claims,)."""
    effects = np.full(setting.primary + setting.secondary, setting.others)
    effects[[0, *([setting.primary] if setting.secondary else [])]] = setting.effect
    return effects


def judge(
    differences: np.ndarray, withheld: np.ndarray, primary: np.ndarray, matters: float
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Verdict -> whether a claim got it (families, claims); and the seeds at which it was decided, or 32."""
    still_open = np.ones(differences.shape[:2], bool)
    seeds = np.full(still_open.shape, LOOKS[-1])
    made = np.zeros((len(STATEMENTS), *still_open.shape), bool)
    at_looks = np.full((*made.shape, len(LOOKS)), np.nan)
    for i, look in enumerate(LOOKS):
        now = np.moveaxis(p_values(differences[..., :look], "higher", MARGIN, matters), -1, 0)
        at_looks[..., i] = np.where(still_open, now, np.nan)  # what is decided is not looked at again
        said = np.stack([shown(adjusted(p, primary), q) for p, q in zip(at_looks, now, strict=True)])
        said &= still_open & ~withheld[..., i]
        made |= said
        claim, opposite, _, none, _ = said
        decided = claim | opposite | none
        seeds[still_open & decided] = look
        still_open &= ~decided
    claim, opposite, direction, none, reverse = made
    verdicts = {
        "reproduced": claim & ~none,
        "weaker than claimed": opposite & (direction | (~none & ~reverse)),
        "no difference": none & ~direction,
        "contradicted": opposite & reverse & ~none & ~direction,
    }
    return verdicts, seeds


def _draw(rng: np.random.Generator, setting: Setting, families: int) -> tuple[np.ndarray, np.ndarray]:
    """Differences (families, claims, seeds); and where one side's collapse forbids a decision (…, looks)."""
    claims, seeds = setting.primary + setting.secondary, LOOKS[-1]
    arms = LAWS[setting.law](rng, (families, claims + 1, seeds))  # the last is the base arm
    collapsed = np.zeros(arms.shape, bool)
    if setting.collapses:
        which = {"every arm": slice(None), "treated arms": slice(claims), "base arm": slice(claims, None)}
        at = which[setting.collapses]
        collapsed[:, at] = rng.random(collapsed[:, at].shape) < COLLAPSE
    lost = COLLAPSE * DEPTH  # on average, given back so that the mean difference is the effect
    treated, base = (arms - DEPTH * collapsed)[:, :claims], (arms - DEPTH * collapsed)[:, claims:]
    sides = [setting.collapses in ("every arm", side) for side in ("treated arms", "base arm")]
    unit = np.sqrt(2 + sum(sides) * COLLAPSE * (1 - COLLAPSE) * DEPTH**2)
    fair = (treated - base + lost * (sides[0] - sides[1])) / unit
    some = np.stack([collapsed[..., :look].any(axis=-1) for look in LOOKS], axis=-1)
    return fair + _effects(setting)[:, None], some[:, :claims] != some[:, claims:]


def _settings() -> Iterator[Setting]:
    for law in LAWS:  # every claim at the boundary
        for primary, secondary in ((1, 0), (3, 0), (3, 10)):
            yield Setting(law, "", primary, secondary, MARGIN, MARGIN)
        yield Setting(law, "", 3, 10, 1.0, 1.0, matters=1.0)
        yield Setting(law, "", 3, 10, MARGIN, 2.0)  # one at the boundary, the others found
    for where in ("every arm", "treated arms", "base arm"):
        yield Setting("normal", where, 3, 10, MARGIN, MARGIN)
    for effect in (-0.6, -0.3, 0.0, 0.7, 1.0, 1.4):  # power
        yield Setting("normal", "", 3, 10, effect, effect)
    for matters in (0.6, 1.0):
        yield Setting("normal", "", 3, 10, 0.0, 0.0, matters)


def table(families: int) -> pd.DataFrame:
    """A row a setting: its rates in %, and mean seeds."""
    rows = []
    for setting in _settings():
        found = rates(setting, families)
        percent = {name: round(100 * value, 1) for name, value in found.items() if name != "seeds"}
        rows.append(setting._asdict() | {"seeds": round(found["seeds"], 1)} | percent)
    return pd.DataFrame(rows).assign(families=families)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--families", type=int, default=20_000)
    options = parser.parse_args()
    table(options.families).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
