"""Rewards of single steps, and the tokens at which they end, for process supervision.

In DeepSeekMath (arXiv 2402.03300, §4.1.3) a reward model scores every step, the last one with the answer too.
Here the world's step verifier scores the steps, 1 or 0, and the answer is one more step: it ends with the
completion, and its reward is the accuracy reward. Without it a wrong answer after right steps would go
unpunished.
"""

from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate
from typing import Any

from recipes.errors import UserError
from recipes.objectives.process_supervision import Steps
from recipes.worlds.protocol import Problem, World

Reader = Callable[[Problem, str, list[int], float], Steps]  # problem, completion, its ids, accuracy -> steps


def reader(world: World, tokenizer: Any, special: bool = False) -> Reader:
    """Reads the steps of a completion: those of the world's step verifier, then the answer.

    Of what its problem has begun only what comes behind it counts. `special`: completions are written with
    their special tokens, as samples on disk and evaluations have them; only that which ends them is left out.
    """
    texts: dict[int, str] = {}  # token -> its text

    def read(problem: Problem, completion: str, ids: list[int], accuracy: float) -> Steps:
        written = ids[:-1] if special and ids[-1:] == [tokenizer.eos_token_id] else ids
        for token in set(written) - texts.keys():
            texts[token] = tokenizer.decode([token], skip_special_tokens=not special)
        ends = list(accumulate(len(texts[token]) for token in written))
        if "".join(texts[token] for token in written) != completion:
            ends = _token_ends(written, completion, tokenizer, skip_special_tokens=not special)
        last, begun = len(ids) - 1, len(problem.begun)
        whole = problem.begun + completion
        verdicts = zip(world.step_ends(problem, whole), world.steps(problem, whole), strict=True)
        steps = [(bisect_left(ends, end - begun), float(right)) for end, right in verdicts if end > begun]
        return [*steps, (last, accuracy)]

    return read


def _token_ends(ids: list[int], text: str, tokenizer: Any, **how: bool) -> list[int]:
    """The offset in `text` just past each token, for tokenizers whose tokens decode differently in context.

    Where several tokens make up one character, the last of them holds it and the others end before it. Raises
    UserError if decoding does not give `text` again.
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
