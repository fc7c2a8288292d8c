"""Length-controlled win rates: the preference between two policies if their replies were equally long.

A judge that likes length is beaten by padding. AlpacaEval's length-controlled win rate (Dubois et al. 2024,
arXiv 2404.04475, Eq. 1) is the win rate if both replies were equally long, by a logistic model of the
probability that a reply y of the policy beats z of the baseline:

    P(y beats z) = sigmoid(theta + phi * tanh((|y| - |z|) / s)),   s = std of |y| - |z| over all pairs

theta is the policy's strength, and phi the judge's preference for length; tanh limits the weight of a few
very long replies. The length-controlled win rate is the prediction at equal length, sigmoid(theta). Like the
plain rate it is 1/2 for a policy against itself, and one minus itself with the sides exchanged.

If one side is longer in nearly every pair, the data do not show what equal length would bring: the prediction
is then an extrapolation of the logistic form.

AlpacaEval's third term, the difficulty of each instruction, is left out: it is estimated from the many models
of a leaderboard, and here both sides answer the same prompts. A normal prior of standard deviation 10 keeps
theta finite if one side wins every pair (AlpacaEval regularises too). A tie is half a win for each side. The
log-likelihood is concave in the two parameters.
"""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from scipy import optimize
from scipy.special import expit

from analysis.numbers.means import Mean, number, with_interval
from analysis.preferences.replies import BySeed, Replies, paired
from analysis.preferences.win_rates import between, estimate, same_items
from analysis.statistics.intervals import interval

PRIOR = 10.0  # standard deviation of theta and phi
SHIFTS = (0, 1, -1, 2, -2)  # sample j of one side is paired with sample j + shift of the other
BY = ("gold", "proxy")


def logistic(x: np.ndarray, wins: np.ndarray, prior: float = PRIOR) -> np.ndarray:
    """Return maximum a posteriori weights (features,) of P(win) = sigmoid(x @ weights), prior N(0, prior^2).

    x (rows, features), wins (rows,) in [0, 1]: 1/2 is half a win.
    """
    ridge = np.eye(x.shape[1]) / prior**2

    def loss(w: np.ndarray) -> float:
        return float(np.sum(np.logaddexp(0, x @ w) - wins * (x @ w)) + w @ ridge @ w / 2)

    def gradient(w: np.ndarray) -> np.ndarray:
        return x.T @ (expit(x @ w) - wins) + ridge @ w

    def hessian(w: np.ndarray) -> np.ndarray:
        p = expit(x @ w)
        return (x * (p * (1 - p))[:, None]).T @ x + ridge

    start = np.zeros(x.shape[1])
    return optimize.minimize(loss, start, method="trust-exact", jac=gradient, hess=hessian, tol=1e-12).x


def pairs(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs of n samples with m samples, as the indices (pairs,) on each side.

    No pair occurs twice, and all samples occur about equally often. Each sample of the larger side is paired
    with five samples of the other side, or with all if there are fewer.
    """
    if n == m:
        shifts = sorted({shift % n for shift in SHIFTS})
        return np.tile(np.arange(n), len(shifts)), np.concatenate([(np.arange(n) + s) % n for s in shifts])
    most, least = max(n, m), min(n, m)
    met = min(len(SHIFTS), least)
    larger, smaller = np.repeat(np.arange(most), met), np.arange(most * met) % least
    return (larger, smaller) if n > m else (smaller, larger)


def features(lengths: np.ndarray, baseline: np.ndarray) -> np.ndarray:
    """Return the features (items * pairs, 2) of each pair: 1, and tanh of the standardised length difference.

    `lengths` (items, n) and `baseline` (items, m) are the lengths of both sides' samples in tokens.
    """
    left, other = pairs(lengths.shape[1], baseline.shape[1])
    difference = (lengths[:, left] - baseline[:, other]).ravel()
    bounded = np.tanh(difference / (difference.std() or 1.0))
    return np.stack([np.ones_like(difference), bounded], axis=1)


def _controlled(policy: Replies, other: Replies, score: str) -> tuple[float, float]:
    """Return theta of `policy` against `other` by `score`, and its standard error, for one seed.

    The error is clustered by item (sandwich, Liang & Zeger 1986), because pairs of one item are dependent.
    """
    a, b = paired(policy, other, score)
    x = features(*paired(policy, other, "tokens"))
    a, b = (side[:, met] for side, met in zip((a, b), pairs(a.shape[1], b.shape[1]), strict=True))
    wins = ((a > b) + 0.5 * (a == b)).ravel()  # (items * pairs,)
    weights = logistic(x, wins)
    p = expit(x @ weights)
    residual = (x * (wins - p)[:, None]).reshape(len(a), -1, 2).sum(axis=1)  # (items, 2)
    bread = np.linalg.inv((x * (p * (1 - p))[:, None]).T @ x + np.eye(2) / PRIOR**2)
    return float(weights[0]), float(np.sqrt((bread @ (residual.T @ residual) @ bread)[0, 0]))


def rate(policy: BySeed, other: BySeed, score: str) -> Mean:
    """Return the length-controlled win rate of `policy` against `other` by `score`.

    The interval is over seeds; for a single seed, over items.
    """
    fitted: dict[tuple[int, int], tuple[float, float]] = {}
    for seed in sorted(set(policy) & set(other)):
        key = (id(policy[seed]), id(other[seed]))
        if key not in fitted and all(score in side[seed].scores for side in (policy, other)):
            fitted[key] = _controlled(policy[seed], other[seed], score)
    thetas = np.array([theta for theta, _ in fitted.values()])
    if not len(thetas):
        return Mean(np.nan, np.nan, np.nan, 0, "")
    rates = expit(thetas).tolist()
    if len(rates) > 1:
        return Mean(sum(rates) / len(rates), *interval(rates), len(rates), "seeds")
    ends = expit(thetas[0] + 1.96 * next(iter(fitted.values()))[1] * np.array([-1.0, 1.0]))
    return Mean(rates[0], float(ends[0]), float(ends[1]), 1, "items")


def against(replies: Mapping[str, BySeed], baseline: str, of_baseline: Mapping[str, BySeed]) -> pd.DataFrame:
    """Return a row for each contender but the baseline: its plain and its length-controlled win rates.

    They are against the baseline, by gold and by proxy. `of_baseline` maps each contender's name to the
    baseline's replies, scored by that contender's proxy.
    """
    rows = []
    for name, policy in replies.items():
        other = of_baseline[name]
        if name == baseline or not (shared := sorted(set(policy) & set(other))):
            continue
        lengths = [
            float(np.mean(a) - np.mean(b))
            for a, b in (paired(policy[seed], other[seed], "tokens") for seed in shared)
        ]
        row: dict = {"of": name, "against": baseline, "length": sum(lengths) / len(lengths)}
        for score in BY:
            plain = estimate(between(policy, other, score), same_items(policy, other))
            fair = rate(policy, other, score)
            for kind, mean in (("win_rate", plain), ("controlled", fair)):
                row |= mean.columns(f"{score}/{kind}", f"{score}/{kind}_")
        rows.append(row)
    return pd.DataFrame(rows).dropna(axis=1, how="all")


def against_shown(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table of against() as text for readers."""
    rows = []
    for row in frame.to_dict("records"):
        out = {"": row["of"], "tokens more": number(row["length"], "length")}
        for score in (score for score in BY if f"{score}/win_rate" in row):
            for kind, words in (("win_rate", f"by {score}"), ("controlled", f"by {score}, at equal length")):
                ends = (row[f"{score}/{kind}_low"], row[f"{score}/{kind}_high"])
                out[words] = with_interval(row[f"{score}/{kind}"], *ends)
        rows.append(out)
    return pd.DataFrame(rows)
