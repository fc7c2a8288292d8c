"""The rewards of single steps, and the tokens at which steps end, for process supervision.

In DeepSeekMath (arXiv 2402.03300, §4.1.3) a reward model scores every step, also the last step with the
answer. Here the world's step verifier scores the steps, 1 or 0, and the answer is one more step: it ends with
the completion, and its reward is the accuracy reward. Without this reward a wrong answer after right steps
would go unpunished.
"""

from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from encore.errors import UserError
from encore.objectives.process_supervision import Steps
from encore.worlds.protocol import Problem, World

Reader = Callable[[Problem, str, list[int], float], Steps]  # problem, completion, its ids, accuracy -> steps
Placer = Callable[[Problem, str, list[int]], list[int]]  # problem, completion, ids -> positions in the ids


def reader(world: World, tokenizer: Any, special: bool = False) -> Reader:
    """Return a reader of the steps of a completion: the steps of the world's step verifier, then the answer.

    If the problem has begun the completion, only steps after this beginning count. `special` is as in
    `locator`.
    """
    locate = locator(tokenizer, special)

    def steps_of(problem: Problem, completion: str, ids: list[int], accuracy: float) -> Steps:
        steps = verdicts(world, problem, completion)
        places = locate(completion, ids, [end for end, _ in steps])
        return [*zip(places, (float(right) for _, right in steps), strict=True), (len(ids) - 1, accuracy)]

    return steps_of


def placer(world: World | None, tokenizer: Any, special: bool = False) -> Placer:
    """Return a function that finds the tokens in which a completion's steps end, and its last token.

    They are indices of the tokens. Steps end as `step_ends` says; `special` is as in `locator`.
    """
    locate = locator(tokenizer, special)

    def place(problem: Problem, completion: str, ids: list[int]) -> list[int]:
        return [*locate(completion, ids, step_ends(world, problem, completion)), len(ids) - 1]

    return place


def step_ends(world: World | None, problem: Problem, completion: str) -> list[int]:
    """Return where the steps of a completion end, as offsets in characters; the completion's end is left out.

    A world says where its steps end, after the prefill of the problem. A data set has no world: its steps are
    the lines that are not blank.
    """
    if world is not None:
        begun = len(problem.begun)
        return [end - begun for end in world.step_ends(problem, problem.begun + completion) if end > begun]
    ends, end = [], 0
    for line in completion.splitlines(keepends=True):
        if line.strip():
            ends.append(end + len(line.rstrip()))
        end += len(line)
    return ends[:-1]


def verdicts(world: World, problem: Problem, completion: str) -> list[tuple[int, bool]]:
    """Return the `step_ends` of a completion, each with whether its step is right by the world's verifier."""
    whole, begun = problem.begun + completion, len(problem.begun)
    pairs = zip(world.step_ends(problem, whole), world.steps(problem, whole), strict=True)
    return [(end - begun, right) for end, right in pairs if end > begun]


def locator(tokenizer: Any, special: bool = False) -> Callable[[str, list[int], list[int]], list[int]]:
    """Return a function that turns character offsets in a completion, `ends`, into indices of its tokens.

    An offset's token is the first one whose text reaches the offset. `special`: completions contain their
    special tokens, as samples on disk and evaluations have them, except the token that ends them.
    """
    texts: dict[int, str] = {}  # token -> text

    def locate(completion: str, ids: list[int], ends: list[int]) -> list[int]:
        written = ids[:-1] if special and ids[-1:] == [tokenizer.eos_token_id] else ids
        for token in set(written) - texts.keys():
            texts[token] = tokenizer.decode([token], skip_special_tokens=not special)
        behind = list(accumulate(len(texts[token]) for token in written))
        if "".join(texts[token] for token in written) != completion:
            behind = _token_ends(written, completion, tokenizer, skip_special_tokens=not special)
        return [bisect_left(behind, end) for end in ends]

    return locate


def told(scores: NDArray[np.float64], right: NDArray[np.bool_]) -> dict[str, float]:
    """Measure how well `scores` (n,) separate right steps from wrong steps.

    `accuracy` is the share of steps whose score has the right sign: positive for a right step. `right` is the
    share of right steps. `auc`, if there are both kinds, is the probability that a right step scores above a
    wrong step; a tie counts half. The result is empty without steps.
    """
    if not len(right):
        return {}
    measured = {"accuracy": float(np.mean((scores > 0) == right)), "right": float(right.mean())}
    if 0 < right.sum() < len(right):
        # Mann and Whitney's U statistic
        above = rankdata(scores)[right].sum() - right.sum() * (right.sum() + 1) / 2
        measured["auc"] = float(above / (right.sum() * (~right).sum()))
    return measured


def _token_ends(ids: list[int], text: str, tokenizer: Any, **how: bool) -> list[int]:
    """Return the offset in `text` just past each token.

    It also works if tokens decode differently in context. If several tokens make up one character, the last
    of them holds it and the others end before it. Raises UserError if decoding does not give `text` again.
    """
    ends, end = [], 0
    for count in range(1, len(ids) + 1):
        prefix = tokenizer.decode(ids[:count], **how)
        if text.startswith(prefix) and len(prefix) >= end:
            end = len(prefix)
        ends.append(end)
    if end != len(text):
        raise UserError(
            f"process supervision cannot tell which tokens of {type(tokenizer).__name__} make up the steps: "
            f"{text[:60]!r} is not what its {len(ids)} tokens decode to"
        )
    return ends
