"""A completion that keeps its tokens, and how it ended, while it passes through lm-eval as plain text."""

from collections.abc import Collection, Sequence
from typing import Any

from lm_eval.models.utils import postprocess_generated_text

from encore.sampling.turns import Talk


class Completion(str):
    """A text with the number of its `tokens`, the end-of-sequence token included, and their `ids`.

    `truncated`: whether the end-of-sequence token never came. `context`: the prompt's token ids. If a tool
    has answered, the text has its results too, while `said` and `tokens` are the policy's own part.
    """

    tokens: int
    truncated: bool
    ids: Sequence[int]
    context: Sequence[int]
    said: str
    turns: Sequence[str] = ()  # texts of the policy and of the tool in turn, if the policy has a tool
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
    """Return the completion of sampled token `ids`, cut before a stop string, with special tokens kept.

    `ended`: the last of `ids` ends the sequence; it is counted, but not shown.
    """
    decoded = tokenizer.decode(ids[:-1] if ended else ids, skip_special_tokens=False)
    text = postprocess_generated_text(decoded, stops, None)
    if text != decoded:
        ids, ended = tokenizer(text, add_special_tokens=False)["input_ids"], True
    return Completion(text, tokens=len(ids), truncated=not ended, ids=ids, context=context)


def answered(talk: Talk, ends: Collection[int], context: Sequence[int], tokenizer: Any) -> Completion:
    """Return a completion of several turns. A last token of `ends` is counted, but not shown."""
    policy_ids = talk.said()
    ended = policy_ids[-1] in ends
    texts = [talk.ids[:-1], policy_ids[:-1]] if ended else [talk.ids, policy_ids]
    whole, said = tokenizer.batch_decode(texts, skip_special_tokens=False)
    done = Completion(whole, tokens=len(policy_ids), truncated=not ended, ids=talk.ids, context=context)
    done.said, done.turns = said, talk.turns(tokenizer)
    done.calls, done.malformed = talk.calls, talk.malformed
    return done
