"""Comparisons as a reward model reads them: token ids, pairs, and arrays over pairs, of `preferences`."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

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
