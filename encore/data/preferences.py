"""Preferences: responses to a prompt, ranked by a labeller; made by one stage and learnt from by another."""

import math
import random
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, TypedDict, cast

from encore.errors import UserError, nearest
from encore.runtime import health
from encore.runtime import rows as files
from encore.worlds.text import text_hash


class Preference(TypedDict):
    """A row: a prompt and K ranked responses."""

    prompt: str
    question: str
    answer: str
    difficulty: int
    responses: list[str]
    ranking: list[int]  # numbers of responses, best first
    scores: list[float]  # the labeller's scores; more is better
    split: str  # one of SPLITS
    truncated: list[bool]  # whether each response was cut before its end


class Pair(TypedDict):
    """Two responses of a row; the labeller prefers `chosen`."""

    prompt: str
    chosen: str
    rejected: str
    margin: float  # difference between the scores of the two responses
    row: int  # number of the row
    chosen_truncated: bool
    rejected_truncated: bool


FILE = "preferences.jsonl"
NEEDED = ("prompt", "question", "answer", "difficulty", "responses", "ranking", "scores", "split")
COLUMNS = (*NEEDED, "truncated")
SPLITS = ("train", "validation")
SKIPPED = ("empty", "nan", "equal", "tie", "rows")
MANY = 0.10  # share of rows without a pair; if it is larger, the learnt prompts are not the intended ones


def save(rows: Sequence[Preference], folder: Path) -> None:
    """Write the COLUMNS of `rows` to `folder`/preferences.jsonl, either completely or not at all."""
    files.save(rows, COLUMNS, folder, FILE)


def load(metrics_json: Path, split: str | None = None) -> list[Preference]:
    """Return the rows that an upstream stage has saved, usable or not, of one split or of both.

    Raises UserError if they are missing or changed, or if a row lacks a column or contradicts itself.
    """
    rows = files.load(metrics_json, FILE, NEEDED, "preferences")
    for number, row in enumerate(rows, start=1):
        row.setdefault("truncated", [False] * len(row["responses"]))
        if wrong := _contradiction(row):
            raise UserError(f"{metrics_json}: preferences, row {number}: {wrong}")
    return of_split(cast(list[Preference], rows), split)


def of_split(rows: Sequence[Preference], split: str | None) -> list[Preference]:
    """Return the rows of one split, or all."""
    if split is not None and split not in SPLITS:
        raise UserError(f'split: no split "{split}"{nearest(split, [*SPLITS])}')
    return [row for row in rows if split in (None, row["split"])]


def first(rows: Sequence[Any], problems: int | None) -> list[Any]:
    """Return the rows of the first `problems` prompts, or all. Raises UserError if there are fewer."""
    if problems is not None and problems > len(rows):
        raise UserError(f"problems: {problems} asked, but there are {len(rows)} prompts to train on")
    return [*rows[:problems]]


def split_of_prompt(prompt: str, validation: float) -> str:
    """Return the split of a prompt, which its hash decides.

    The share `validation` of all prompts is never trained on.
    """
    return "validation" if text_hash(prompt) < validation * 2**64 else "train"


def by_score(scores: Sequence[float]) -> list[int]:
    """Return the ranking by `scores`, best first.

    Equal scores keep their order, and non-finite ones come last.
    """
    return sorted(range(len(scores)), key=lambda i: -scores[i] if _finite(scores[i]) else math.inf)


def usable(rows: Sequence[Preference]) -> tuple[list[Preference], dict[str, int]]:
    """Return the rows to learn from, and counts of what cannot be learnt from.

    - empty, nan: responses, now removed, without text or without a finite score
    - equal, tie: pairs, which `pairs` will leave out, of equal texts or equal scores
    - rows: rows, now removed, without a usable pair
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


def checks(rows: Sequence[Preference], counts: Mapping[str, int]) -> list[health.Check]:
    """Return health checks of `usable` rows: an error if none is left, a warning if many were left out."""
    total = len(rows) + counts["rows"]
    left_out = (
        f"{counts['empty']} empty responses, {counts['nan']} without a score, {counts['equal']} pairs of "
        f"equal responses and {counts['tie']} ties are skipped; {counts['rows']} of {total} prompts have no "
        "pair left"
    )
    share = counts["rows"] / total if total else 1.0
    bad = counts["empty"] + counts["nan"]
    return [
        health.make_check("pairs", bool(rows), len(rows), 1, left_out, "error"),
        health.make_check("skipped", share <= MANY and not bad, share, MANY, left_out, "warning"),
    ]


def metrics(counts: Mapping[str, int]) -> dict[str, float]:
    """Return the counts of `usable` as metrics, such as `skipped/empty`."""
    return {f"skipped/{name}": counts[name] for name in SKIPPED}


def better_worse(row: Mapping[str, Any]) -> list[tuple[int, int]]:
    """Return (better, worse) of each pair of a row's responses that differ in text and in score."""
    texts, scores = row["responses"], row["scores"]
    return [
        (better, worse)
        for better, worse in combinations(row["ranking"], 2)
        if texts[better] != texts[worse] and scores[better] != scores[worse]
    ]


def pairs(rows: Sequence[Preference], which: str = "all", seed: int = 0) -> list[Pair]:
    """Return the pairs of texts to learn from; equal responses and ties make no pair.

    `which` is `all` for the pairs of each row, one row after another; `best_worst` for the pair of each row
    with the largest margin; or `one` for a pair of each row that is drawn at random.
    """
    if which not in (known := ("all", "best_worst", "one")):
        raise UserError(f'pairs: no choice "{which}"{nearest(which, [*known])}')
    rng = random.Random(f"pairs {seed}")
    chosen: list[Pair] = []
    for number, row in enumerate(rows):
        possible = _pairs(row, number)
        if which == "all" or not possible:
            chosen += possible
        elif which == "one":
            chosen.append(rng.choice(possible))
        else:
            chosen.append(max(possible, key=lambda pair: pair["margin"]))
    return chosen


def _pairs(row: Preference, number: int) -> list[Pair]:
    texts, scores, cut = row["responses"], row["scores"], row["truncated"]
    return [
        {
            "prompt": row["prompt"],
            "chosen": texts[better],
            "rejected": texts[worse],
            "margin": scores[better] - scores[worse],
            "row": number,
            "chosen_truncated": cut[better],
            "rejected_truncated": cut[worse],
        }
        for better, worse in better_worse(row)
    ]


def _contradiction(row: Mapping[str, Any]) -> str | None:
    """Return how the columns of a row contradict each other, or None."""
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


def _only(row: Preference, good: Sequence[int]) -> Preference:
    """Return the row with only the responses at the positions `good`."""
    if len(good) == len(row["responses"]):
        return row
    place = {old: new for new, old in enumerate(good)}
    kept = row.copy()
    kept["responses"] = [row["responses"][i] for i in good]
    kept["scores"] = [row["scores"][i] for i in good]
    kept["truncated"] = [row["truncated"][i] for i in good]
    kept["ranking"] = [place[i] for i in row["ranking"] if i in place]
    return kept


def _finite(score: Any) -> bool:
    return isinstance(score, int | float) and math.isfinite(score)
