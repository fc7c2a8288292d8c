"""The history of verdicts: how each claim of each record was judged, from version to version.

A line is added if a claim's verdict, or its number of seeds, has changed: by a new record or by a new rule.
No line is ever removed or rewritten, so an old line has the word of the rule at its date.
"""

from collections.abc import Iterable
from pathlib import Path

import pandas as pd

from analysis.verdicts.claims import NOT_TESTED, Verdict
from analysis.verdicts.rule import EQUIVALENT, OPEN, REVERSED, SHOWN, SMALLER

FILE = "history.csv"
COLUMNS = ["record", "claim", "date", "commit", "seeds", "verdict"]
FORMER = {  # word of the rule until 2026-11-24 -> the present word for it
    "reproduced": SHOWN,
    "weaker than claimed": SMALLER,
    "direction only": SMALLER,
    "no difference": EQUIVALENT,
    "contradicted": REVERSED,
    "inconclusive": OPEN,
    "supported so far": OPEN,
    "weaker so far": OPEN,
    "opposed so far": OPEN,
}


def read_history(folder: Path) -> pd.DataFrame:
    path = folder / FILE
    texts = {name: str for name in COLUMNS if name != "seeds"}
    return pd.read_csv(path, dtype=texts) if path.exists() else pd.DataFrame(columns=COLUMNS)


def extended(
    history: pd.DataFrame, record: str, claims: pd.DataFrame, date: str, commit: str
) -> pd.DataFrame:
    """Return the history with a new line for each claim whose verdict or number of seeds has changed.

    `claims` are the rows of the record's claims.csv.
    """
    last = history[history.record == record].drop_duplicates("claim", keep="last").set_index("claim")
    known = {claim: (int(row.seeds), row.verdict) for claim, row in last.iterrows()}
    new = [
        [record, row["id"], date, commit, int(row["n"]), row["word"]]
        for row in claims.to_dict("records")
        if known.get(row["id"], (0, "not tested")) != (int(row["n"]), row["word"])
    ]
    return pd.concat([history, pd.DataFrame(new, columns=COLUMNS)], ignore_index=True) if new else history


def by_an_earlier_rule(
    history: pd.DataFrame, record: str, verdicts: Iterable[Verdict], last_run: str
) -> dict[str, str]:
    """Return claim -> a text with its earlier verdict on the same runs, for claims whose verdict changed.

    `last_run` is the day on which the last run of the record began. Lines from before that day, and lines
    with another number of seeds, are about other runs, and are ignored.
    """
    said = {}
    lines = history[(history.record == record) & (history.date >= last_run)]
    for verdict in verdicts:
        of_claim = lines[(lines.claim == verdict.id) & (lines.seeds == verdict.n)]
        words = of_claim.verdict.map(lambda word: FORMER.get(word, word))
        other = of_claim[(words != verdict.word) & (words != NOT_TESTED)]
        if len(other):
            said[verdict.id] = f"{other.verdict.iloc[-1]} (until the rule or the attempt changed)"
    return said


def changes(history: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each claim whose verdict ever changed, with all of its verdicts and their origins."""
    rows = []
    for (record, claim), lines in history.groupby(["record", "claim"], sort=True):
        if lines.verdict.nunique() > 1:
            each = zip(lines.verdict, lines.seeds, lines.date, lines.commit, strict=True)
            path = [
                f"{verdict} ({seeds} seeds, {date}, {commit[:7]})" for verdict, seeds, date, commit in each
            ]
            rows.append({"record": record, "claim": claim, "verdicts": " \N{RIGHTWARDS ARROW} ".join(path)})
    return pd.DataFrame(rows, columns=["record", "claim", "verdicts"])
