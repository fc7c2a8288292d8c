"""Texts as token ids.

Prompt and reply are tokenised separately, as they are when a reply is sampled, so that no token spans both.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

Row = Mapping[str, Any]  # a Preference, or a row with its columns prompt, responses and truncated
OneRow = TypeVar("OneRow", bound=Row)
Sequences = list[list[int]]  # token ids of prompt and response, for each response of a row


def prompt_ids(texts: Sequence[str], tokenizer: Any) -> list[list[int]]:
    """Return token ids of prompts; training, sampling, evaluation, reward models and vLLM use the same ids.

    Tokens that the tokenizer puts before every text, such as Llama's BOS, occur once, even if a chat template
    has already written them. The end of sequence that some tokenizers add is left out.
    """
    if not texts:
        return []
    begin = _beginning(tokenizer)
    ids = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    return [[*([] if row[: len(begin)] == begin else begin), *row] for row in ids]


def following_ids(texts: Sequence[str], tokenizer: Any) -> list[list[int]]:
    """Return token ids of texts as they follow an end of sequence, which is not included."""
    if not texts:
        return []
    ids = tokenizer([tokenizer.eos_token + text for text in texts], add_special_tokens=False)["input_ids"]
    return [row[1:] for row in ids]


def _beginning(tokenizer: Any) -> list[int]:
    """Return the ids that the tokenizer puts before every text."""
    alone = list(tokenizer("")["input_ids"])
    return alone[:-1] if len(alone) > 1 and alone[-1] == tokenizer.eos_token_id else alone


def end_ids(generation: Any, tokenizer: Any) -> list[int]:
    """Return the tokens that end a completion, ascending.

    They are the ends in a model's generation config, where chat models have several, and the tokenizer's own.
    """
    ends = getattr(generation, "eos_token_id", None)
    listed = ends if isinstance(ends, list) else [ends]
    return sorted({end for end in (*listed, tokenizer.eos_token_id) if end is not None})


def reply_ids(texts: Sequence[str], truncated: Sequence[bool], tokenizer: Any) -> list[list[int]]:
    """Return token ids of replies without their prompts, with the end of sequence unless `truncated`."""
    if not texts:
        return []
    ids = tokenizer(list(texts), add_special_tokens=False)["input_ids"]
    end = [tokenizer.eos_token_id]
    return [[*reply, *([] if cut else end)] for reply, cut in zip(ids, truncated, strict=True)]


def tokenised(rows: Sequence[Row], tokenizer: Any) -> list[Sequences]:
    """Return the token ids of prompt and response together, for each response of each row."""
    if not rows:
        return []
    prompts = prompt_ids([row["prompt"] for row in rows], tokenizer)
    texts = [text for row in rows for text in row["responses"]]
    truncated = [cut for row in rows for cut in row["truncated"]]
    replies = iter(reply_ids(texts, truncated, tokenizer))
    return [
        [[*prompt, *next(replies)] for _ in row["responses"]]
        for prompt, row in zip(prompts, rows, strict=True)
    ]


def fitting(
    rows: Sequence[OneRow], sequences: Sequence[Sequences], limit: int | None
) -> tuple[list[OneRow], list[Sequences]]:
    """Return the rows whose sequences all have at most `limit` tokens, and these sequences."""
    good = [i for i, row in enumerate(sequences) if limit is None or max(map(len, row)) <= limit]
    return [rows[i] for i in good], [sequences[i] for i in good]
