"""What the decision rule does where the truth is known: how often it is wrong, and what it finds.

    python tests/conformance/decision_rule.py --families 4000 --out results/published/decision_rule.csv

Families of claims `higher` are drawn. In a star each claim compares an arm of its own with one base arm; in a
ladder each compares an arm with the arm before it, so that neighbours are correlated by -1/2. Claims are
judged at the planned looks by verdicts.rule, the very functions that judge records. Effects are in
standard deviations of a seed's difference. The margin is 0.2 or 2. At that true effect `shown` and `shown,
smaller` are wrong, and as often as they ever are; `reversed` is so at 0, and `equivalent` at the smallest
effect that matters.

Some runs of one side may collapse, or of both. The true effect is then that of the median difference.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from analysis.verdicts.rule import (
    EQUIVALENT,
    REVERSED,
    SHOWN,
    SMALLER,
    WORDS,
    Asked,
    Decision,
    Sample,
    alpha_of,
    judge,
)
from encore.recipe.looks import LOOKS

MARGIN = 0.2
COLLAPSE, DEPTH = 0.15, 5.0  # the share of runs that collapse, and how far they fall
SETTLING = 400_000  # differences from which a median is taken
Law = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]


def _normal(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_normal(shape)


def _heavy(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.standard_t(3, shape) / np.sqrt(3)


def _skewed(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.exponential(size=shape) - 1


LAWS: dict[str, Law] = {"normal": _normal, "heavy tails (t, 3 df)": _heavy, "skewed (exponential)": _skewed}


@dataclass(frozen=True)
class Setting:
    """A family of claims: how its seeds vary, how its arms are compared, and the true effects."""

    law: str = "normal"
    compared: str = "star"  # star | ladder
    collapses: str = ""  # "" | every arm | treated arms | base arm
    primary: int = 3
    secondary: int = 10
    effect: float = MARGIN  # of the first claim of each kind
    others: float = MARGIN  # of the other claims
    margin: float = MARGIN
    matters: float = MARGIN  # the smallest effect that matters
    gated: float = 0.0  # the share of claims whose gate is absent, which are not tested
    attempt: int = 1


def rates(setting: Setting, families: int, seed: int = 0) -> dict[str, float]:
    """Return how often each word is given to the claims whose true effect is `setting.effect`.

    "<word>": the share of those claims; "any <word>, primary" (secondary): the share of families in which any
    of those claims got the word; "seeds": the mean number of seeds at which a claim was decided, or 32.

    "any wrong, primary": the share of families in which any primary claim, of whatever effect, got a word
    that is not true of it. "wrong of decided, secondary": the mean share of such claims among the decided.
    """
    rng = np.random.default_rng(seed)
    differences, one_sided = _draw(rng, setting, families)
    differences[rng.random(differences.shape[:2]) < setting.gated] = np.nan
    asked = _asked(setting)
    decision = judge_looks(differences, one_sided, asked)
    counted = _effects(setting) == setting.effect
    seeds = np.where(decision.decided, np.array(LOOKS)[decision.look], LOOKS[-1])
    shares = {"seeds": float(seeds[:, counted].mean())}
    for index, word in enumerate(WORDS):
        said = decision.word == index
        shares[word] = float(said[:, counted].mean())
        for kind, among in (("primary", asked.primary & counted), ("secondary", ~asked.primary & counted)):
            if among.any():
                shares[f"any {word}, {kind}"] = float(said[:, among].any(axis=1).mean())
    wrong = wrong_words(setting)[np.arange(len(counted)), decision.word]  # (families, claims)
    shares["any wrong, primary"] = float(wrong[:, asked.primary].any(axis=1).mean())
    if setting.secondary:
        decided = decision.decided[:, ~asked.primary].sum(axis=1)
        shares["wrong of decided, secondary"] = float(
            (wrong[:, ~asked.primary].sum(axis=1) / np.maximum(decided, 1)).mean()
        )
    return shares


def wrong_words(setting: Setting) -> np.ndarray:
    """Return whether a word is not true of a claim's effect (claims, words)."""
    d, m, s = _effects(setting), setting.margin, setting.matters
    wrong = {
        SHOWN: d <= m,
        SMALLER: (d <= 0) | (d >= max(m, s)),
        EQUIVALENT: np.abs(d) >= s,
        REVERSED: d >= 0,
    }
    return np.stack([wrong.get(word, np.zeros(len(d), bool)) for word in WORDS], axis=-1)


def judge_looks(differences: np.ndarray, one_sided: np.ndarray, asked: Asked) -> Decision:
    """Return the decisions after the last look, from all differences (families, claims, seeds).

    one_sided (families, claims, looks): whether runs of one side alone have collapsed by a look.
    """
    decision = None
    for look, seeds in enumerate(LOOKS):
        part = differences[..., :seeds]
        sample = Sample(part, np.zeros(part.shape[:2]), one_sided[..., look])
        decision = judge(sample, asked, look, decision)
    assert decision is not None
    return decision


def _asked(setting: Setting) -> Asked:
    claims = setting.primary + setting.secondary
    return Asked(
        direction=np.full(claims, "higher"),
        margin=np.full(claims, setting.margin),
        smallest_effect=np.full(claims, setting.matters),
        primary=np.arange(claims) < setting.primary,
        alpha=np.full(claims, alpha_of(setting.attempt)),
    )


def _effects(setting: Setting) -> np.ndarray:
    """Return the true effects (claims,)."""
    effects = np.full(setting.primary + setting.secondary, setting.others)
    effects[[0, *([setting.primary] if setting.secondary else [])]] = setting.effect
    return effects


def _draw(rng: np.random.Generator, setting: Setting, families: int) -> tuple[np.ndarray, np.ndarray]:
    """Return differences (families, claims, seeds), and where one side alone collapsed (…, claims, looks)."""
    claims = setting.primary + setting.secondary
    raw, treated, base = _compared(rng, setting, families, claims)
    by_look = [(treated[..., :look].any(axis=-1), base[..., :look].any(axis=-1)) for look in LOOKS]
    one_sided = np.stack([first != second for first, second in by_look], axis=-1)
    fair = raw - _middle(setting.law, setting.collapses)
    return fair + _effects(setting)[:, None], one_sided


def _compared(
    rng: np.random.Generator, setting: Setting, families: int, claims: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return differences without an effect, and which runs of either side collapsed (…, claims, seeds)."""
    arms = LAWS[setting.law](rng, (families, claims + 1, LOOKS[-1]))  # the last is the base arm
    collapsed = np.zeros(arms.shape, bool)
    if setting.collapses:
        which = {"every arm": slice(None), "treated arms": slice(claims), "base arm": slice(claims, None)}
        at = which[setting.collapses]
        collapsed[:, at] = rng.random(collapsed[:, at].shape) < COLLAPSE
    fallen = arms - DEPTH * collapsed
    if setting.compared == "ladder":
        return (fallen[:, :-1] - fallen[:, 1:]) / np.sqrt(2), collapsed[:, :-1], collapsed[:, 1:]
    base = np.broadcast_to(collapsed[:, claims:], collapsed[:, :claims].shape)
    return (fallen[:, :claims] - fallen[:, claims:]) / np.sqrt(2), collapsed[:, :claims], base


@cache
def _middle(law: str, collapses: str) -> float:
    """Return the centre of differences without an effect: a median if one side collapses, else a mean."""
    if collapses in ("", "every arm"):
        return 0.0
    setting = Setting(law, collapses=collapses)
    raw, _, _ = _compared(np.random.default_rng(1), setting, SETTLING // LOOKS[-1], 1)
    return float(np.median(raw))


def _settings() -> Iterator[Setting]:
    for law in LAWS:  # every claim at the boundary
        for primary, secondary in ((1, 0), (3, 0), (3, 10)):
            yield Setting(law, primary=primary, secondary=secondary)
        yield Setting(law, effect=1.0, others=1.0, matters=1.0)
        yield Setting(law, others=2.0)  # one at the boundary, the others found
        yield Setting(law, effect=0.0, others=0.0)
    yield Setting(effect=2.0, others=2.0, margin=2.0)  # wrong on both sides: `shown` and `shown, smaller`
    yield Setting(compared="ladder")
    yield Setting(compared="ladder", others=2.0)
    yield Setting(gated=0.3)
    yield Setting(attempt=2)
    for where in ("every arm", "treated arms", "base arm"):
        yield Setting(collapses=where)
    for effect in (-0.6, -0.3, 0.7, 1.0, 1.4):  # what the rule finds
        yield Setting(effect=effect, others=effect)
    for matters in (0.6, 1.0):
        yield Setting(effect=0.0, others=0.0, matters=matters)


def table(families: int) -> pd.DataFrame:
    """Return a row for each setting: its rates in %, and the mean number of seeds."""
    rows = []
    for setting in _settings():
        shares = rates(setting, families)
        percent = {name: round(100 * value, 1) for name, value in shares.items() if name != "seeds"}
        rows.append(asdict(setting) | {"seeds": round(shares["seeds"], 1)} | percent)
    return pd.DataFrame(rows).assign(families=families)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--families", type=int, default=20_000)
    options = parser.parse_args()
    table(options.families).to_csv(options.out, index=False)


if __name__ == "__main__":
    main()
