r"""Process supervision (DeepSeekMath, arXiv 2402.03300, §4.1.3): advantages from the rewards of single steps.

Of the G completions of a prompt the i-th has K_i steps; step j ends at token index(j) with reward r_i^j, and
R holds the rewards of all steps of all of them. Normalised over R, a token's advantage is the sum over the
steps that end at it or after it:

    r~_i^j = (r_i^j - mean(R)) / std(R)        A_{i,t} = \sum_{index(j) >= t} r~_i^j

As for TRL's outcome rewards, std has ddof 1 and 1e-4 is added to it. Process rewards are all there is: other
rewards play no part. The paper's reward model also scores the last step, which holds the answer. So here the
last step is the answer: it ends with the completion, and its reward is the accuracy reward. Without it a
wrong answer after right steps would go unpunished. The world's step verifier scores the others, 1 or 0.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import torch

from recipes.errors import UserError
from recipes.worlds.protocol import Problem, World

GUARD = 1e-4  # TRL's
Steps = list[tuple[int, float]]  # of a completion: token at which a step ends, its reward
Reader = Callable[[Problem, str, list[int], float], Steps]  # problem, completion, its ids, accuracy -> steps


def advantages(steps: Sequence[Steps], group_size: int, width: int) -> torch.Tensor:
    """(batch, width): one row for each of `steps`, which hold whole groups one after another."""
    table = torch.zeros(len(steps), width + 1)
    for start in range(0, len(steps), group_size):
        group = steps[start : start + group_size]
        rewards = torch.tensor([reward for row in group for _, reward in row], dtype=torch.float64)
        scores = normalised(rewards).tolist()
        for row, ends in enumerate(group, start):
            for end, _ in ends:
                table[row, end] += scores.pop(0)
    # the sum from each token on
    return table.flip(1).cumsum(1).flip(1)[:, :width]


def normalised(rewards: torch.Tensor) -> torch.Tensor:
    """`rewards` less their mean, over their standard deviation; 0 where there are fewer than two."""
    if len(rewards) < 2:
        return torch.zeros_like(rewards)
    return (rewards - rewards.mean()) / (rewards.std() + GUARD)


def reader(world: World, tokenizer: Any) -> Reader:
    """Reads the steps of a completion: those of the world's step verifier, then the answer."""
    pieces: dict[int, str] = {}  # token -> its text

    def read(problem: Problem, completion: str, ids: list[int], accuracy: float) -> Steps:
        for token in set(ids) - pieces.keys():
            pieces[token] = tokenizer.decode([token], skip_special_tokens=True)
        ends = list(accumulate(len(pieces[token]) for token in ids))
        if "".join(pieces[token] for token in ids) != completion:
            ends = prefixes(ids, completion, tokenizer)
        last = len(ids) - 1
        marks = [bisect_left(ends, end) for end in world.step_ends(problem, completion)]
        rewards = map(float, world.steps(problem, completion))
        return [*zip(marks, rewards, strict=True), (last, accuracy)]

    return read


def prefixes(ids: list[int], text: str, tokenizer: Any) -> list[int]:
    """The offset in `text` just past each token, where a token's text depends on those before it.

    A token that ends within a character (of several bytes) ends where the one before it does; the character
    is its last token's. Raises UserError if decoding does not give `text` again.
    """
    ends, end = [], 0
    for count in range(1, len(ids) + 1):
        prefix = tokenizer.decode(ids[:count], skip_special_tokens=True)
        if text.startswith(prefix) and len(prefix) >= end:
            end = len(prefix)
        ends.append(end)
    if end != len(text):
        raise UserError(
            f"advantage: process cannot tell which tokens of {type(tokenizer).__name__} make up the steps: "
            f"{text[:60]!r} is not what its {len(ids)} tokens decode to; take another advantage"
        )
    return ends
