"""A completion that keeps its tokens and how it ended while it passes through lm-eval as plain text."""

from collections.abc import Sequence
from typing import Any

from lm_eval.models.utils import postprocess_generated_text


class Completion(str):
    """Text with the number of its `tokens`, the end-of-sequence token included, and their `ids`.

    `truncated`: whether that token never came. `context`: the prompt's token ids.
    """

    tokens: int
    truncated: bool
    ids: Sequence[int]
    context: Sequence[int]

    def __new__(
        cls,
        text: str,
        tokens: int,
        truncated: bool,
        ids: Sequence[int] = (),
        context: Sequence[int] = (),
    ) -> "Completion":
        self = super().__new__(cls, text)
        self.tokens, self.truncated, self.ids, self.context = tokens, truncated, ids, context
        return self


def completed(
    ids: Sequence[int], ended: bool, stops: list[str], context: Sequence[int], tokenizer: Any
) -> Completion:
    """What a model said, whatever has drawn its token `ids`: cut before a stop string, special tokens kept.

    `ended`: whether the last of `ids` ends the sequence; it is counted, not shown.
    """
    decoded = tokenizer.decode(ids[:-1] if ended else ids, skip_special_tokens=False)
    text = postprocess_generated_text(decoded, stops, None)
    if text != decoded:
        ids, ended = tokenizer(text, add_special_tokens=False)["input_ids"], True
    return Completion(text, tokens=len(ids), truncated=not ended, ids=ids, context=context)
