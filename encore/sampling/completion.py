"""The text of a completion with its tokens and how it ended, in a form that lm-eval passes on as text."""

from collections.abc import Collection, Sequence
from typing import Any

from lm_eval.models.utils import postprocess_generated_text

from encore.sampling.turns import Talk


class Completion(str):
    """The text of a completion, with its token `ids`, and the ids of its prompt as `context`.

    `tokens`: the number of tokens, including the end-of-sequence token. `truncated`: whether the completion
    was cut because it reached the limit of tokens. If the policy has called a tool, the text and `ids`
    include the tool's results; `said` and `tokens` are the text and number of tokens of the policy alone.
    """

    tokens: int
    truncated: bool
    ids: Sequence[int]
    context: Sequence[int]
    said: str
    turns: Sequence[str] = ()  # texts of the policy and of the tool in turn, if the policy has a tool
    calls: int = 0
    malformed: int = 0
    call_rewards: Sequence[float | None] = ()  # the world's reward of each answered call
    states: Sequence[str | None] = ()  # the world's state after each answered call

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
    """Return the completion with the sampled token `ids`, cut before the first stop string.

    `ended`: whether the last of `ids` ends the sequence; this token is counted, but left out of the text.
    Other special tokens stay in the text.
    """
    decoded = tokenizer.decode(ids[:-1] if ended else ids, skip_special_tokens=False)
    text = postprocess_generated_text(decoded, stops, None)
    if text != decoded:
        ids, ended = tokenizer(text, add_special_tokens=False)["input_ids"], True
    return Completion(text, tokens=len(ids), truncated=not ended, ids=ids, context=context)


def answered(talk: Talk, ends: Collection[int], context: Sequence[int], tokenizer: Any) -> Completion:
    """Return the completion that the turns of `talk` make up.

    If its last token is one of `ends`, this token is counted, but left out of the text.
    """
    policy_ids = talk.said()
    ended = policy_ids[-1] in ends
    texts = [talk.ids[:-1], policy_ids[:-1]] if ended else [talk.ids, policy_ids]
    whole, said = tokenizer.batch_decode(texts, skip_special_tokens=False)
    done = Completion(whole, tokens=len(policy_ids), truncated=not ended, ids=talk.ids, context=context)
    done.said, done.turns = said, talk.turns(tokenizer)
    done.calls, done.malformed = talk.calls, talk.malformed
    done.call_rewards, done.states = talk.call_rewards, talk.states
    return done
