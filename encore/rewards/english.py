r"""Reward `english`: the share of a scratchpad's words that are written in Latin letters.

For Hub datasets, whose text no world can read, it is the language-consistency reward of DeepSeek-R1 (arXiv
2501.12948v1, §2.3.2): the share of the words of a chain of thought that are of the target language. The paper
does not say how a word's language is found. Here its script decides, which tells English from the Chinese
that the paper's model mixes with it, and not from German:

| text                                     | words              |
|------------------------------------------|--------------------|
| letters of the Latin script in a row     | one, of English    |
| any other letter, such as an ideograph   | one, of none       |
| digits, signs, commands such as `\frac`  | none at all        |

Without words it is 0, so leaving the scratchpad out earns nothing.
"""

import re

from encore.worlds.answers import scratchpad
from encore.worlds.protocol import Problem

LATIN = "A-Za-zÀ-ÖØ-öø-ɏ"
COMMAND = re.compile(r"\\[A-Za-z]+")
WORD = re.compile(rf"[{LATIN}]+|[^\W\d_]")


def english(problem: Problem, completion: str) -> float:
    """From 0 to 1. Linear time; never raises."""
    words = WORD.findall(COMMAND.sub(" ", scratchpad(completion)))
    latin = sum(re.match(f"[{LATIN}]", word) is not None for word in words)
    return latin / max(1, len(words))
