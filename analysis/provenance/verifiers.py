"""How often the verifiers of a run's answers were wrong when they were audited."""

from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd

from analysis.numbers.run import Run

AUDIT = "results/published/verifier_audit.csv"


def audit(run: Run) -> pd.DataFrame:
    """The rows of the audit for the verifiers that the run's data sets name; empty without."""
    names = {name for node in run.all_nodes() for name in _named(run.graph.config(node))}
    path = run.root / AUDIT
    if not names or not path.exists():
        return pd.DataFrame()
    rows = pd.read_csv(path, dtype=str, keep_default_na=False)
    return rows.loc[rows.verifier.isin(names)].reset_index(drop=True)


def errors(rows: pd.DataFrame) -> str:
    """How many right answers were not accepted and wrong ones were, over all rows of the audit."""
    counts = {name: int(rows[name].astype(int).sum()) for name in rows.columns if ": " in name}
    right, wrong = (
        sum(n for name, n in counts.items() if name.startswith(label)) for label in ("right: ", "wrong: ")
    )
    return (
        f"of {right:,} right answers {counts['right: refused']} refused and {counts['right: unreadable']} "
        f"unreadable, of {wrong:,} wrong ones {counts['wrong: accepted']} accepted"
    )


def _named(config: Any) -> Iterator[str]:
    """The verifiers in a resolved config, wherever its tasks stand."""
    if isinstance(config, Mapping):
        if "verifier" in config:
            yield config["verifier"]
        for value in config.values():
            yield from _named(value)
