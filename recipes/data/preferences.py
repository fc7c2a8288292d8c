"""Preferences: responses to a prompt, ranked by a labeller; made by one stage and learnt from by another.

A row: prompt, question, answer, difficulty; `responses` (K texts), `truncated` (K: it never came to its end),
`scores` (K, of the labeller: more is better), `ranking` (indices of responses, best first) and `split`.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import Any

from recipes.errors import UserError, nearest
from recipes.runtime import health
from recipes.runtime import rows as files

FILE = "preferences.jsonl"
NEEDED = ("prompt", "question", "answer", "difficulty", "responses", "ranking", "scores", "split")
COLUMNS = (*NEEDED, "truncated")
SPLITS = ("train", "validation")
SKIPPED = ("empty", "nan", "equal", "tie", "rows")
MANY = 0.10  # Above a tenth of rows without a pair, what is learnt is of other prompts than was meant.


Row = dict[str, Any]
Pair = dict[str, Any]


def save(rows: Sequence[Row], folder: Path) -> None:
    """Write the COLUMNS of `rows` to `folder`/preferences.jsonl, wholly or not at all."""
    files.save(rows, COLUMNS, folder, FILE)


def load(metrics_json: Path, split: str | None = None) -> list[Row]:
    """The rows that an upstream stage has saved, of one split or of both; `usable` says which to learn from.

    Raises UserError where they are missing or changed, or a row lacks a column or contradicts itself.
    """
    rows = files.load(metrics_json, FILE, NEEDED, "preferences")
    for number, row in enumerate(rows, start=1):
        row.setdefault("truncated", [False] * len(row["responses"]))
        if wrong := _contradiction(row):
            raise UserError(f"{metrics_json}: preferences, row {number}: {wrong}")
    return of_split(rows, split)


def of_split(rows: Sequence[Row], split: str | None) -> list[Row]:
    """The rows of one split, or all."""
    if split is not None and split not in SPLITS:
        raise UserError(f'split: no split "{split}"{nearest(split, [*SPLITS])}')
    return [row for row in rows if split in (None, row["split"])]


def split_of(prompt: str, validation: float) -> str:
    """The split of a prompt, by its hash: a share of `validation` of all prompts is never trained on."""
    number = int.from_bytes(blake2b(prompt.encode(errors="surrogatepass"), digest_size=8).digest(), "big")
    return "validation" if number < validation * 2**64 else "train"


def by_score(scores: Sequence[float]) -> list[int]:
    """The ranking that `scores` say, best first; equal ones keep their order, what is no number is last."""
    return sorted(range(len(scores)), key=lambda i: -scores[i] if _finite(scores[i]) else math.inf)


def usable(rows: Sequence[Row]) -> tuple[list[Row], dict[str, int]]:
    """The rows less what nothing can be learnt from, and how often each was left out.

    `empty` and `nan` count responses that are left out: of no text, of no finite score; `equal` and `tie`
    count pairs that `pairs` leaves out: of the same text, of the same score; `rows` those without a pair.
    """
    kept, counts = [], dict.fromkeys(SKIPPED, 0)
    for row in rows:
        good = []
        for i, (text, score) in enumerate(zip(row["responses"], row["scores"], strict=True)):
            if not text.strip():
                counts["empty"] += 1
            elif not _finite(score):
                counts["nan"] += 1
            else:
                good.append(i)
        row = _only(row, good)
        possible = 0
        for first, second in combinations(range(len(good)), 2):
            if row["responses"][first] == row["responses"][second]:
                counts["equal"] += 1
            elif row["scores"][first] == row["scores"][second]:
                counts["tie"] += 1
            else:
                possible += 1
        if possible:
            kept.append(row)
        else:
            counts["rows"] += 1
    return kept, counts


def checks(rows: Sequence[Row], counts: Mapping[str, int]) -> list[health.Check]:
    """What `usable` has kept and left out: an error where nothing is left, a warning where it is much."""
    total = len(rows) + counts["rows"]
    left_out = (
        f"{counts['empty']} empty responses, {counts['nan']} without a score, {counts['equal']} pairs of "
        f"equal responses and {counts['tie']} ties are skipped; {counts['rows']} of {total} prompts have no "
        "pair left"
    )
    share = counts["rows"] / total if total else 1.0
    bad = counts["empty"] + counts["nan"]
    return [
        health.check("pairs", bool(rows), len(rows), 1, left_out, "error"),
        health.check("skipped", share <= MANY and not bad, share, MANY, left_out, "warning"),
    ]


def metrics(counts: Mapping[str, int]) -> dict[str, float]:
    """The counts of `usable` as metrics: `skipped/empty`, …"""
    return {f"skipped/{name}": counts[name] for name in SKIPPED}


def pairs(rows: Sequence[Row], which: str = "all", seed: int = 0) -> list[Pair]:
    """Pairs to learn from: prompt, chosen, rejected, margin (of their scores), `row` (its index in `rows`),
    chosen_truncated, rejected_truncated.

    `which`: all C(K,2) of a row, one after another; its best_worst; or one drawn at random. Equal responses
    and ties make none: best_worst is the pair farthest apart of those that are.
    """
    if which not in (known := ("all", "best_worst", "one")):
        raise UserError(f'pairs: no choice "{which}"{nearest(which, [*known])}')
    rng = random.Random(f"pairs {seed}")
    found: list[Pair] = []
    for number, row in enumerate(rows):
        possible = [*_pairs(row, number)]
        if which == "all" or not possible:
            found += possible
        elif which == "one":
            found.append(rng.choice(possible))
        else:
            found.append(max(possible, key=lambda pair: pair["margin"]))
    return found


def _pairs(row: Row, number: int) -> Iterator[Pair]:
    texts, scores, cut = row["responses"], row["scores"], row["truncated"]
    for best, worst in combinations(row["ranking"], 2):
        if texts[best] != texts[worst] and scores[best] != scores[worst]:
            yield {
                "prompt": row["prompt"],
                "chosen": texts[best],
                "rejected": texts[worst],
                "margin": scores[best] - scores[worst],
                "row": number,
                "chosen_truncated": cut[best],
                "rejected_truncated": cut[worst],
            }


def _contradiction(row: Row) -> str | None:
    """What a row says of itself that cannot be."""
    size = len(row["responses"])
    for name in ("scores", "truncated"):
        if len(row[name]) != size:
            return f"{size} responses and {len(row[name])} {name}"
    if sorted(row["ranking"]) != list(range(size)):
        return f"ranking: expected the indices 0 to {size - 1} in some order, got {row['ranking']}"
    if not all(isinstance(text, str) for text in row["responses"]):
        return "responses: expected texts"
    ordered = [row["scores"][i] for i in row["ranking"] if _finite(row["scores"][i])]
    if ordered != sorted(ordered, reverse=True):
        return "its ranking is not that of its scores; expected the best first"
    if row["split"] not in SPLITS:
        return f'split: no split "{row["split"]}"{nearest(row["split"], [*SPLITS])}'
    return None


def _only(row: Row, good: Sequence[int]) -> Row:
    """The row with the responses at `good` alone."""
    if len(good) == len(row["responses"]):
        return row
    place = {old: new for new, old in enumerate(good)}
    columns = {name: [row[name][i] for i in good] for name in ("responses", "scores", "truncated")}
    return row | columns | {"ranking": [place[i] for i in row["ranking"] if i in place]}


def _finite(score: Any) -> bool:
    return isinstance(score, int | float) and math.isfinite(score)
