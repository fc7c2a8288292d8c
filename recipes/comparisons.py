"""Comparisons as a reward model reads them: token ids, pairs, and arrays over pairs, of `preferences`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

Row = Mapping[str, Any]
Sequences = list[list[int]]  # of a row: token ids of prompt and response, one a response


def tokenised(rows: Sequence[Row], tokenizer: Any) -> list[Sequences]:
    """Prompt and responses of each row as token ids; a response that came to its end has the end of sequence.

    Prompt and response apart, as when sampled: no token may span both.
    """
    if not rows:
        return []
    prompts = tokenizer([row["prompt"] for row in rows])["input_ids"]
    texts = [text for row in rows for text in row["responses"]]
    replies = iter(tokenizer(texts, add_special_tokens=False)["input_ids"])
    return [
        [[*prompt, *next(replies), *([] if cut else [tokenizer.eos_token_id])] for cut in row["truncated"]]
        for prompt, row in zip(prompts, rows, strict=True)
    ]


def pairs(row: Row) -> list[tuple[int, int]]:
    """(better, worse) of all C(K,2) pairs of a row's responses, less equal responses and ties."""
    texts, scores = row["responses"], row["scores"]
    return [
        (better, worse)
        for better, worse in combinations(row["ranking"], 2)
        if texts[better] != texts[worse] and scores[better] != scores[worse]
    ]


def fitting(
    rows: Sequence[Row], sequences: Sequence[Sequences], limit: int | None
) -> tuple[list[Row], list[Sequences]]:
    """The rows whose sequences all have at most `limit` tokens, and these sequences."""
    good = [i for i, one in enumerate(sequences) if limit is None or max(map(len, one)) <= limit]
    return [rows[i] for i in good], [sequences[i] for i in good]


@dataclass(frozen=True)
class Measured:
    """Rewards of a split's responses, and what its pairs say of them."""

    rewards: np.ndarray  # (responses,)
    lengths: np.ndarray  # (responses,): tokens, prompt included
    prompt: np.ndarray  # (responses,): which row
    gap: np.ndarray  # (pairs,): reward of the better less that of the worse
    margin: np.ndarray  # (pairs,): likewise of the labeller's scores
    longer: np.ndarray  # (pairs,): likewise of the lengths
    pair_prompt: np.ndarray  # (pairs,): which row


def measured(rows: Sequence[Row], sequences: Sequence[Sequences], rewards: np.ndarray) -> Measured:
    """`rewards` (responses,): of all `sequences`, row after row."""
    lengths = np.array([len(one) for of in sequences for one in of], dtype=float)
    prompt = np.array([number for number, of in enumerate(sequences) for _ in of], dtype=int)
    better, worse, margin, pair_prompt, start = [], [], [], [], 0
    for number, row in enumerate(rows):
        for i, j in pairs(row):
            better.append(start + i)
            worse.append(start + j)
            margin.append(row["scores"][i] - row["scores"][j])
            pair_prompt.append(number)
        start += len(row["responses"])
    return Measured(
        rewards,
        lengths,
        prompt,
        rewards[better] - rewards[worse],
        np.array(margin, dtype=float),
        lengths[better] - lengths[worse],
        np.array(pair_prompt, dtype=int),
    )
