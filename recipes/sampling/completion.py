"""A completion that remembers how it ended, as it passes through lm-eval as plain text."""

from collections.abc import Sequence


class Completion(str):
    """Text with `tokens` (generated, the end-of-sequence token included) and `truncated` (it never came).

    `ids` are those tokens, and `context` the prompt's.
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
