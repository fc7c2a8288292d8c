"""A completion that keeps its tokens and how it ended while it passes through lm-eval as plain text."""

from collections.abc import Sequence


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
