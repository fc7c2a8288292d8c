"""The gain of training with every protocol, and the effect of each choice of a protocol on the gain.

The gain with a protocol is the accuracy after training minus the accuracy before, both measured with the
protocol. Intervals are 95% percentile bootstraps over problems; each resample is the same for all protocols
and both models, so all differences are paired by problem. They are for this pair of models, and leave out the
variation between seeds of training.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from analysis.numbers.run import Row
from analysis.sensitivity.rates import Floats, Rates
from encore.recipe.sensitivity import Protocol
from evals.passk import interval, resamples

CHOICES = Protocol._fields
BEST = "each model's best"  # label in place of a choice, in the last row of by_choice()


def by_protocol(rates: Rates) -> pd.DataFrame:
    """Return a row for each protocol: its choices, the accuracies before and after training, and the gain.

    Columns of numbers: before, after, gain, gain_low, gain_high, more, more_low, more_high. `more` is the
    gain minus the gain with the first protocol.
    """
    gains, resampled = rates.after - rates.before, resamples(rates.before.shape[1])
    rows = []
    for index, protocol in enumerate(rates.protocols):
        row: Row = protocol._asdict() | _levels(rates.before[index], rates.after[index])
        row |= _estimate("gain", gains[index], resampled)
        rows.append(row | _estimate("more", gains[index] - gains[0], resampled, against=index > 0))
    return pd.DataFrame(rows)


def by_choice(rates: Rates) -> pd.DataFrame:
    """Return a row for each level of each choice that has several levels: the mean over its protocols.

    The columns are as in by_protocol(). `more` is the gain with the level minus the gain with the choice's
    first level, all other choices being equal. The last row measures each model with the protocol that suits
    it best; its `more` is relative to the first protocol.
    """
    resampled = resamples(rates.before.shape[1])
    return pd.DataFrame([*_of_choices(rates, resampled), _of_the_best(rates, resampled)])


def spread(frame: pd.DataFrame) -> tuple[Mapping[Any, Any], Mapping[Any, Any]]:
    """Return the row with the lowest and the row with the highest gain of a table of by_protocol()."""
    rows = sorted(frame.to_dict("records"), key=lambda row: row["gain"])
    return rows[0], rows[-1]


def _of_choices(rates: Rates, resampled: Floats) -> Iterator[Row]:
    gains = dict(zip(rates.protocols, rates.after - rates.before, strict=True))
    for choice in CHOICES:
        levels = list(dict.fromkeys(getattr(protocol, choice) for protocol in rates.protocols))
        for level in levels if len(levels) > 1 else ():
            of_level = [protocol for protocol in gains if getattr(protocol, choice) == level]
            rows = [rates.protocols.index(protocol) for protocol in of_level]
            pairs = [
                gains[protocol] - gains[other]
                for protocol in of_level
                if (other := protocol._replace(**{choice: levels[0]})) in gains
            ]
            row: Row = {"choice": choice, "level": str(level), "protocols": len(of_level)}
            row |= _levels(rates.before[rows].mean(axis=0), rates.after[rows].mean(axis=0))
            row |= _estimate("gain", _mean([gains[protocol] for protocol in of_level]), resampled)
            yield row | _estimate("more", _mean(pairs), resampled, against=level != levels[0] and bool(pairs))


def _of_the_best(rates: Rates, resampled: Floats) -> Row:
    before, after = (int(side.mean(axis=1).argmax()) for side in (rates.before, rates.after))
    gain = rates.after[after] - rates.before[before]
    level = f"before {label(rates.protocols[before])}; after {label(rates.protocols[after])}"
    row: Row = {"choice": BEST, "level": level, "protocols": len({before, after})}
    row |= _levels(rates.before[before], rates.after[after]) | _estimate("gain", gain, resampled)
    return row | _estimate("more", gain - (rates.after[0] - rates.before[0]), resampled)


def label(protocol: Protocol | Mapping[Any, Any]) -> str:
    """Return a protocol as text, such as `turn, plain, T 0.6, hf`."""
    chosen = protocol._asdict() if isinstance(protocol, Protocol) else protocol
    return f"{chosen['template']}, {chosen['wording']}, T {chosen['temperature']:g}, {chosen['backend']}"


def _mean(rows: Sequence[Floats]) -> Floats:
    return np.mean(rows, axis=0) if len(rows) else np.array([])


def _levels(before: Floats, after: Floats) -> dict[str, float]:
    return {"before": float(before.mean()), "after": float(after.mean())}


def _estimate(name: str, values: Floats, resampled: Floats, against: bool = True) -> dict[str, float]:
    """Return the mean of `values` (problems,) and its interval, as columns `name`, `…_low` and `…_high`.

    `resampled` has the counts of problems in each resample. against: False if there is nothing to compare
    with; all three numbers are then nan.
    """
    estimate = interval(values, np.ones(len(values)), resampled) if against else (np.nan,) * 3
    return dict(zip((name, f"{name}_low", f"{name}_high"), estimate, strict=True))
