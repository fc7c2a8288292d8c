"""The dates of a record's claims: whether they were written before its runs.

The file WRITTEN, beside the records, has a row for each record, compiled by hand from git. `fixed_commit` is
the last commit that changed what decides a claim at the record's scale: metric, sides, direction, margin,
smallest effect, gates, or whether the claim is primary. `first_run_commit` is the commit of the first run of
a judged seed, in any version of the record's table of jobs. `written`, a key of SAID, says which came first.
"""

from pathlib import Path

import pandas as pd

from analysis.numbers.recorded import title

WRITTEN = "written.csv"
COLUMNS = ["record", "claims", "fixed_commit", "fixed", "first_run_commit", "first_run", "written", "later"]
SAID = {  # value of the column `written` -> when the record's claims were written
    "before": "before the first run that is recorded",
    "before, other seeds seen": "before the first run of the judged seeds, but after a record of other seeds",
    "before, some with new arms": (
        "before the first run that is recorded, but the claims in brackets later, before the new arms that "
        "they are about had run"
    ),
    "partly after": (
        "with metric, sides, direction and margin before the first run of the judged seeds, and what stands "
        "in brackets after it"
    ),
}


def read_written(folder: Path) -> pd.DataFrame:
    """Return the content of the file WRITTEN in `folder`; no rows if the file is missing."""
    path = folder / WRITTEN
    return pd.read_csv(path, keep_default_na=False) if path.exists() else pd.DataFrame(columns=COLUMNS)


def of_record(record: Path) -> str:
    """Return a sentence on when the claims of a record were written; "" if it is not known."""
    rows = read_written(record.parent)
    for row in rows[rows.record == record.name].to_dict("records"):
        return (
            f"The claims were written {SAID[row['written']]}{_in_brackets(row['later'])}: commit "
            f"{row['fixed_commit']} of {row['fixed'][:10]}, first run {row['first_run_commit']} of "
            f"{row['first_run'][:10]}."
        )
    return ""


def listed(folder: Path) -> str:
    """Return when the claims of the records in `folder` were written, as a Markdown list.

    The text is empty if the file WRITTEN is missing.
    """
    names: dict[str, list[str]] = {kind: [] for kind in SAID}
    for row in read_written(folder).to_dict("records"):
        names[row["written"]].append(title(row["record"]) + _in_brackets(row["later"]))
    return "".join(f"- {said}: {', '.join(names[kind])}\n" for kind, said in SAID.items() if names[kind])


def _in_brackets(later: str) -> str:
    return f" ({later})" if later else ""
