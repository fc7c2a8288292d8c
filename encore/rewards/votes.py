"""Rewards that read which answer a completion states: the answer of its group's majority, or a wrong one.

| name      | 1 when, else 0                                                                       |
|-----------|--------------------------------------------------------------------------------------|
| majority  | no answer is more common in the group than the completion's own (TTRL, 2504.16084)   |
| incorrect | the completion states an answer, and the answer is wrong (arXiv 2506.10947)          |

A group is the completions of one prompt in a rollout, on several GPUs the part that one process has. Answers
that tie for the majority are all rewarded. A completion without an answer has no vote and no reward. Two
answers are the same if their texts are: `1/2` and `0.5` are two answers.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence


def majority(prompts: Sequence[str], answers: Sequence[str | None]) -> list[float]:
    """Return the reward `majority` of each completion, from its prompt and its answer."""
    votes: dict[str, Counter[str]] = defaultdict(Counter)
    for prompt, answer in zip(prompts, answers, strict=True):
        if answer is not None:
            votes[prompt][answer] += 1
    most = {prompt: max(counts.values()) for prompt, counts in votes.items()}
    pairs = zip(prompts, answers, strict=True)
    return [float(answer is not None and votes[prompt][answer] == most[prompt]) for prompt, answer in pairs]


def incorrect(accuracies: Sequence[float], answers: Sequence[str | None]) -> list[float]:
    """Return the reward `incorrect` of each completion, from its accuracy, 0 or 1, and its answer."""
    pairs = zip(accuracies, answers, strict=True)
    return [float(answer is not None and not accuracy) for accuracy, answer in pairs]
