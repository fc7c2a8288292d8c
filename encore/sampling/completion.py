"""A completion that keeps its tokens and how it ended while it passes through lm-eval as plain text."""

from collections.abc import Collection, Sequence
from typing import Any

from lm_eval.models.utils import postprocess_generated_text

from encore.sampling.turns import Talk


class Completion(str):
    """Text with the number of its `tokens`, the end-of-sequence token included, and their `ids`.

    `truncated`: whether that token never came. `context`: the prompt's token ids. Where a tool has answered,
    the text has its results too, and `said` and `tokens` are the policy's own part.
    """

    tokens: int
    truncated: bool
    ids: Sequence[int]
    context: Sequence[int]
    said: str
    turns: Sequence[str] = ()  # what the policy said, what the tool, and so on; of a policy with a tool
    calls: int = 0
    malformed: int = 0

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
        self.said = text
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


def answered(talk: Talk, ends: Collection[int], context: Sequence[int], tokenizer: Any) -> Completion:
    """A completion of several turns; a token of `ends`, if it is the last, is counted, not shown."""
    own = talk.said()
    ended = own[-1] in ends
    texts = [talk.ids[:-1], own[:-1]] if ended else [talk.ids, own]
    whole, said = tokenizer.batch_decode(texts, skip_special_tokens=False)
    done = Completion(whole, tokens=len(own), truncated=not ended, ids=talk.ids, context=context)
    done.said, done.turns = said, talk.turns(tokenizer)
    done.calls, done.malformed = talk.calls, talk.malformed
    return done
