"""Training prompts that stand in an evaluation set, found by the words that they share in a row.

A prompt is contaminated by an evaluation's question where both have the same 13 words in a row (Brown et al.
2020, Appendix C); one of fewer words is compared as a whole. Case, and what is neither letter nor digit, does
not count. As there, words in a row that more than ten different prompts have are a phrase and are ignored.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

SIZE = 13  # words in a row
COMMON = 10  # different prompts; what more of them share is a phrase
WORD = re.compile(r"\w+")


def contaminated(prompts: Sequence[str], questions: Iterable[str]) -> list[int]:
    """The places of the prompts that share words in a row with a question."""
    asked = {run for question in questions for run in _runs(question)}
    shared = {prompt: asked & _runs(prompt) for prompt in set(prompts)}
    having = Counter(run for runs in shared.values() for run in runs)
    return [i for i, prompt in enumerate(prompts) if any(having[run] <= COMMON for run in shared[prompt])]


def _runs(text: str) -> set[tuple[str, ...]]:
    """SIZE words in a row, at each place of a text; all its words where it has fewer."""
    words = WORD.findall(text.lower())
    if len(words) < SIZE:
        return {tuple(words)} if words else set()
    return {tuple(words[start : start + SIZE]) for start in range(len(words) - SIZE + 1)}
