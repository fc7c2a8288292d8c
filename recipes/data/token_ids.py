"""Texts as token ids.

Prompt and reply are tokenised apart, as when a reply is sampled: no token may span both.
"""

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]  # a Preference, or what has its columns prompt, responses and truncated
Sequences = list[list[int]]  # of a row: token ids of prompt and response, one a response


def reply_ids(texts: Sequence[str], truncated: Sequence[bool], tokenizer: Any) -> list[list[int]]:
    """Token ids of replies without their prompts; with the end of sequence unless a reply is `truncated`."""
    if not texts:
        return []
    ids = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    end = [tokenizer.eos_token_id]
    return [[*reply, *([] if cut else end)] for reply, cut in zip(ids, truncated, strict=True)]


def tokenised(rows: Sequence[Row], tokenizer: Any) -> list[Sequences]:
    """Prompt and response together, of each response of each row."""
    if not rows:
        return []
    prompts = tokenizer([row["prompt"] for row in rows])["input_ids"]
    texts = [text for row in rows for text in row["responses"]]
    truncated = [cut for row in rows for cut in row["truncated"]]
    replies = iter(reply_ids(texts, truncated, tokenizer))
    return [
        [[*prompt, *next(replies)] for _ in row["responses"]]
        for prompt, row in zip(prompts, rows, strict=True)
    ]


def fitting(
    rows: Sequence[Row], sequences: Sequence[Sequences], limit: int | None
) -> tuple[list[Row], list[Sequences]]:
    """The rows whose sequences all have at most `limit` tokens, and these sequences."""
    good = [i for i, one in enumerate(sequences) if limit is None or max(map(len, one)) <= limit]
    return [rows[i] for i in good], [sequences[i] for i in good]
