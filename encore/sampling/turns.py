"""Completions of several turns: a policy that calls a tool is stopped, gets an answer, and continues.

The tool's answer becomes part of the completion, but does not count against the cap. `Talk.own` says which
tokens are the policy's and which the tool's. Each turn continues from exactly the tokens before it; nothing
is tokenised anew.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import Any

from encore.errors import UserError
from encore.recipe.tool import Tool
from encore.sampling import tools

# a function that draws tokens after each context; its arguments are the contexts, the largest number of
# tokens to draw, and the tokens that end a turn, besides the tokens that end a completion; it returns the
# drawn tokens for each context, with the ending token, and their log-probabilities or None
Draw = Callable[[list[list[int]], int, list[int]], tuple[list[list[int]], list[list[float]] | None]]

# keys that a row of completions.jsonl has if the policy has a tool
TURNS = "turns"  # key of the completion's text as a list of turns
CALLS = ("calls", "malformed")
# keys of lists with an entry for each answered call, in a world that rewards calls or shows its state
EPISODE = ("call_rewards", "states")


@dataclass
class Talk:
    """A completion that consists of turns, by the policy and the tool alternately."""

    ids: list[int] = field(default_factory=list)
    own: list[int] = field(default_factory=list)  # (tokens,) 1 at the policy's tokens, 0 at the tool's
    logps: list[float] = field(default_factory=list)  # (tokens,) 0 at the tool's tokens; empty if not known
    calls: int = 0  # number of answered calls
    malformed: int = 0  # number of calls answered by an error
    call_rewards: list[float | None] = field(default_factory=list)  # the world's reward of each answered call
    states: list[str | None] = field(default_factory=list)  # the world's state after each answered call

    def said(self) -> list[int]:
        """Return the ids of the policy's own tokens."""
        return [token for token, mine in zip(self.ids, self.own, strict=True) if mine]

    def turns(self, tokenizer: Any) -> list[str]:
        """Return the texts of the turns, alternately of the policy and of the tool."""
        parts = groupby(zip(self.ids, self.own, strict=True), key=itemgetter(1))
        tokens = [[token for token, _ in part] for _, part in parts]
        return tokenizer.batch_decode(tokens, skip_special_tokens=False)


def closing(tool: Tool, tokenizer: Any) -> int:
    """Return the id of the token that ends a call.

    Raises UserError if the end is not a single token, or if it is a special token, although a world reads
    calls from a text without special tokens.
    """
    ids = tokenizer(tool.call[1], add_special_tokens=False)["input_ids"]
    if len(ids) != 1 or ids[0] == tokenizer.unk_token_id:
        raise UserError(
            f'tool.call: "{tool.call[1]}" ends a call, so it must be one token of the policy\'s tokenizer'
        )
    if tool.acts and ids[0] in tokenizer.all_special_ids:
        raise UserError(
            f'tool.call: "{tool.call[1]}" is a special token of the policy\'s tokenizer, which no reward sees'
        )
    return ids[0]


def room(tool: Tool | None, tokenizer: Any) -> int:
    """Return the largest number of tokens that the tool's results can add to a completion."""
    if tool is None:
        return 0
    around = tokenizer([*tool.result], add_special_tokens=False)["input_ids"]
    return tool.calls * (tool.longest + sum(map(len, around)))


def converse(
    prompts: Sequence[Sequence[int]], cap: int, draw: Draw, used: tools.ToolInWorld, tokenizer: Any
) -> list[Talk]:
    """Return a completion of each prompt, in which the policy writes at most `cap` tokens.

    After `tool.calls` answers a further call gets no answer, and the completion goes on to its end. Raises
    UserError as `closing` does.
    """
    tool = used.tool
    close = closing(tool, tokenizer)
    talks = [Talk() for _ in prompts]
    texts = tokenizer.batch_decode(prompts, skip_special_tokens=False) if tool.acts else [""] * len(talks)
    asked = [tools.Asked(text, []) for text in texts]
    spent = [0] * len(talks)
    going = [*range(len(talks))]
    for turn in range(tool.calls + 1):
        contexts = [[*prompts[i], *talks[i].ids] for i in going]
        left = cap - min(spent[i] for i in going)
        drawn, logps = draw(contexts, left, [close] if turn < tool.calls else [])
        asking = []
        for place, i in enumerate(going):
            # a row with fewer tokens left than another gets too many; its first tokens have the same
            # distribution
            ids = drawn[place][: cap - spent[i]]
            talks[i].ids += ids
            talks[i].own += [1] * len(ids)
            talks[i].logps += logps[place][: len(ids)] if logps else []
            spent[i] += len(ids)
            if turn < tool.calls and ids[-1] == close and spent[i] < cap:
                asked[i].turns.append(tokenizer.decode(ids, skip_special_tokens=False))
                asking.append(i)
        if not asking:
            break
        answers = tools.answers(used, [asked[i] for i in asking])
        for i, answer in zip(asking, answers, strict=True):
            ids = _result(tool, answer.text, tokenizer)
            talks[i].ids += ids
            talks[i].own += [0] * len(ids)
            talks[i].logps += [0.0] * len(ids) if logps else []
            talks[i].calls += 1
            talks[i].malformed += not answer.good
            talks[i].call_rewards.append(answer.reward)
            talks[i].states.append(answer.state)
        going = asking
    return talks


def _result(tool: Tool, answer: str, tokenizer: Any) -> list[int]:
    """Return the token ids of the answer, cut to `tool.longest`, between the two texts of `tool.result`."""
    before, text, after = tokenizer([tool.result[0], answer, tool.result[1]], add_special_tokens=False)[
        "input_ids"
    ]
    return [*before, *text[: tool.longest], *after]
