"""The README of the published records: a row each, from the recipes and the records on disk alone."""

import re
from collections.abc import Mapping
from pathlib import Path

import pandas as pd

from analysis.verdicts import claims, summary
from recipes.spec.recipe import Recipe

HEAD = """# Published records

What came of each recipe that was run for the record. Written by `python -m analysis.publish`, never by hand.

A record's folder, `<recipe>-<scale>`, holds the tables of its report as CSV, among them `claims.csv` (every
verdict, with the difference of each seed), `published.csv` (the paper's numbers beside ours) and
`objectives.csv` (the loss that each arm minimised); `numbers.csv`, the final numbers of every arm and seed;
and `runs.csv`, the commit, versions, hardware, time and tokens of every stage. That commit holds the recipe
as it was run.

"""
COLUMNS = ("recipe", "paper", "what it shows", "verdicts", "seeds", "record")
TAIL = """
Beside the records: `conformance.csv`, every loss and advantage held to its paper's equation; `grpo_speed.csv`
and `grid_speed.csv`, the speed of our trainers against plain TRL.
"""


def readme(folder: Path, recipes: Mapping[str, Recipe]) -> str:
    """The README of `folder`, with a row for each record in it."""
    rows = [COLUMNS, ("---",) * len(COLUMNS)]
    rows += [_row(path.parent, recipes) for path in sorted(folder.glob("*/claims.csv"))]
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows) + TAIL


def _row(record: Path, recipes: Mapping[str, Recipe]) -> tuple[str, ...]:
    name = record.name.rpartition("-")[0]
    spec = recipes[name].spec
    return (
        f"[`{name}`](../../recipes/{name}.yaml)",
        f"[{_cell(spec['title'])}]({spec['url']})",
        _cell(first_sentence(spec.get("expected", ""))),
        summary.counts(claims.read(record / "claims.csv")),
        str(seeds(pd.read_csv(record / "runs.csv"))),
        f"[{record.name}]({record.name})",
    )


def first_sentence(text: str) -> str:
    """Up to the first full stop after a word (not `Dr.`) and before a capital."""
    return re.split(r"(?<=[^\s.]{3}\.)\s+(?=[A-Z])", text.strip())[0]


def seeds(runs: pd.DataFrame) -> int:
    """How many seeds the recipe's own stages have; a stage of another recipe has a / in its name."""
    return runs.seed[~runs.stage.str.contains("/")].nunique()


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
