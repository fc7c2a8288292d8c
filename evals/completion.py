"""A completion that remembers how it ended, as it passes through lm-eval as plain text."""

from collections.abc import Callable

Report = Callable[[int, int], None]  # completions done, completions in all


class Completion(str):
    """Text with `tokens` (generated, the end-of-sequence token included) and `truncated` (it never came)."""

    tokens: int
    truncated: bool

    def __new__(cls, text: str, tokens: int, truncated: bool) -> "Completion":
        self = super().__new__(cls, text)
        self.tokens, self.truncated = tokens, truncated
        return self
