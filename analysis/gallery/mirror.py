"""The adversarial mirror: claims that were shown, drawn by lot, and what came of them in a second world.

    python -m analysis.gallery.mirror

Claims that came out against the paper were tried again in other worlds; claims that came out for the paper
were not. So some of the latter are tried again too. From the records whose seeds share one base model, the
command draws DRAWN shown claims by lot (random seed LOT), and writes them into FILE beside the records, once.
The second world of a claim is the record that replaces its record: it tests the same claims, with a separate
base model for each seed.
"""

import random
import sys
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis import command_line
from analysis.arms.uncertainty import shares_base
from analysis.numbers.means import DASH, Mean, shown
from analysis.numbers.recorded import current
from analysis.verdicts import claims, records
from analysis.verdicts.claims import Verdict
from analysis.verdicts.rule import SHOWN
from encore.errors import UserError
from encore.recipe.graph import Graph
from encore.recipe.load import load_all

RECORDS = Path("results/published")
FILE = "mirror.csv"
DRAWN, LOT = 15, 20261125
COLUMNS = ["record", "claim", "metric", "estimate", "low", "high", "n"]


@dataclass(frozen=True)
class Mirror:
    """The table of the drawn claims with their first and second results, and a sentence about them."""

    table: pd.DataFrame
    said: str


def draw(folder: Path, graph: Graph) -> pd.DataFrame:
    """Draw claims from the records in `folder`; return a row for each, with the numbers that confirmed it."""
    pool = [(record.name, v) for record in current(folder, graph) for v in _shown(record, graph)]
    lot = random.Random(LOT).sample(sorted(pool, key=lambda each: (each[0], each[1].id)), DRAWN)
    rows = [[record, v.id, v.metric, v.estimate, v.low, v.high, v.n] for record, v in lot]
    return pd.DataFrame(rows, columns=COLUMNS)


def _shown(record: Path, graph: Graph) -> list[Verdict]:
    """Return the shown findings of a record; [] if each of its seeds has its own base model."""
    if not shares_base(records.run_of(record, graph)):
        return []
    return [v for v in records.findings(record, graph) if v.word == SHOWN]


def mirror(folder: Path, graph: Graph) -> Mirror | None:
    """Return the first and second results of the drawn claims; None if no claims have been drawn."""
    if not (folder / FILE).exists():
        return None
    rows, words = [], []
    anew = {record.name: not shares_base(records.run_of(record, graph)) for record in current(folder, graph)}
    for row in pd.read_csv(folder / FILE).to_dict("records"):
        again = _again(folder / row["record"], row["claim"]) if anew.get(row["record"]) else None
        words += [again.word] if again else []
        first = Mean(row["estimate"], row["low"], row["high"], row["n"], "seeds")
        rows.append(
            {
                "claim": f"{row['record'].rpartition('-')[0]}: {row['claim']}",
                "one base model": f"{shown(first, row['metric'])}, {row['n']} seeds",
                "a base model for each seed": again.word if again else "not run yet",
                "d": f"{shown(again.difference, again.metric)}, {again.n} seeds"
                if again and again.n
                else DASH,
            }
        )
    held = sum(word == SHOWN for word in words)
    said = (
        f"Of {len(rows)} claims that were shown on one base model, drawn by lot, {len(words)} have been run "
        f"again with a base model for each seed; {held} of these are shown again."
    )
    return Mirror(pd.DataFrame(rows), said)


def _again(record: Path, claim: str) -> Verdict | None:
    return next((v for v in claims.read_verdicts(record / "claims.csv") if v.id == claim), None)


def write(folder: Path = RECORDS) -> None:
    """Draw the claims and write them into FILE. Raises UserError if the file exists."""
    if (folder / FILE).exists():
        raise UserError(f"{folder / FILE}: the lot was drawn already, and is not drawn again")
    draw(folder, Graph(load_all())).to_csv(folder / FILE, index=False)


if __name__ == "__main__":
    sys.exit(command_line.status(write))
