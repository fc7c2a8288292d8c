"""The errors of the verifiers that score a run's answers, as an audit found them."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from analysis.numbers.run import Run
from encore.runtime import suite

AUDIT = "results/published/verifier_audit.csv"


def audit(run: Run) -> pd.DataFrame:
    """Return the rows of the file AUDIT on the verifiers that the run's tasks name; no rows without any."""
    names = {name for node in run.all_nodes() for name in _named(run.graph.config(node))}
    path = suite.folder(run.root) / AUDIT
    if not names or not path.exists():
        return pd.DataFrame()
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    return rows.loc[rows.verifier.isin(names)].reset_index(drop=True)


def errors(rows: pd.DataFrame) -> str:
    """Return a text: how many right answers were refused or unreadable, and how many wrong ones accepted."""
    counts = {name: int(rows[name].astype(int).sum()) for name in rows.columns if ": " in name}
    right, wrong = (
        sum(n for name, n in counts.items() if name.startswith(label)) for label in ("right: ", "wrong: ")
    )
    return (
        f"of {right:,} right answers {counts['right: refused']} refused and {counts['right: unreadable']} "
        f"unreadable, of {wrong:,} wrong ones {counts['wrong: accepted']} accepted"
    )


def _named(config: Any) -> Iterator[str]:
    """Yield the names of all verifiers in a resolved configuration, at any depth."""
    if isinstance(config, Mapping):
        if "verifier" in config:
            yield config["verifier"]
        for value in config.values():
            yield from _named(value)
