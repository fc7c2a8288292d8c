"""A search for training prompts that occur in an evaluation set, by equal runs of words.

A prompt is contaminated by an evaluation's question if both have the same 13 words in a row (Brown et al.
2020, Appendix C); a shorter text is compared as a whole. Case does not count, and neither do characters that
are not letters or digits. As in the paper, words in a row that occur in more than ten different prompts are a
phrase and are ignored.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

SIZE = 13  # words in a run
COMMON = 10  # number of different prompts; a run of words that occurs in more prompts is a phrase
WORD = re.compile(r"\w+")


def contaminated(prompts: Sequence[str], questions: Iterable[str]) -> list[int]:
    """Return the positions of the prompts that share a run of words with a question."""
    asked = {run for question in questions for run in _runs(question)}
    shared = {prompt: asked & _runs(prompt) for prompt in set(prompts)}
    having = Counter(run for runs in shared.values() for run in runs)
    return [i for i, prompt in enumerate(prompts) if any(having[run] <= COMMON for run in shared[prompt])]


def _runs(text: str) -> set[tuple[str, ...]]:
    """Return every run of SIZE words of a text; all its words if it has fewer."""
    words = WORD.findall(text.lower())
    if len(words) < SIZE:
        return {tuple(words)} if words else set()
    return {tuple(words[start : start + SIZE]) for start in range(len(words) - SIZE + 1)}
