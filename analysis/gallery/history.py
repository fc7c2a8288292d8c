"""The history of verdicts: what each claim of each record was judged, from version to version.

A line is added where a claim's verdict, or the number of its seeds, is another than before: by a new record
or by a new rule. Nothing is ever taken away, so a line has the word of the rule of its day.
"""

from pathlib import Path

import pandas as pd

FILE = "history.csv"
COLUMNS = ["record", "claim", "date", "commit", "seeds", "verdict"]


def read(folder: Path) -> pd.DataFrame:
    path = folder / FILE
    texts = {name: str for name in COLUMNS if name != "seeds"}
    return pd.read_csv(path, dtype=texts) if path.exists() else pd.DataFrame(columns=COLUMNS)


def extended(
    history: pd.DataFrame, record: str, claims: pd.DataFrame, date: str, commit: str
) -> pd.DataFrame:
    """With a line for each row of a record's claims.csv that differs from the claim's last line."""
    last = history[history.record == record].drop_duplicates("claim", keep="last").set_index("claim")
    known = {claim: (int(row.seeds), row.verdict) for claim, row in last.iterrows()}
    new = [
        [record, row["id"], date, commit, int(row["n"]), row["word"]]
        for row in claims.to_dict("records")
        if known.get(row["id"], (0, "not tested")) != (int(row["n"]), row["word"])
    ]
    return pd.concat([history, pd.DataFrame(new, columns=COLUMNS)], ignore_index=True) if new else history


def changes(history: pd.DataFrame) -> pd.DataFrame:
    """A row a claim whose verdict ever changed: all its verdicts, in order, with seeds, date and commit."""
    rows = []
    for (record, claim), lines in history.groupby(["record", "claim"], sort=True):
        if lines.verdict.nunique() > 1:
            each = zip(lines.verdict, lines.seeds, lines.date, lines.commit, strict=True)
            path = [
                f"{verdict} ({seeds} seeds, {date}, {commit[:7]})" for verdict, seeds, date, commit in each
            ]
            rows.append({"record": record, "claim": claim, "verdicts": " \N{RIGHTWARDS ARROW} ".join(path)})
    return pd.DataFrame(rows, columns=["record", "claim", "verdicts"])
