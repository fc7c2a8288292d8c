r"""Reward `english`: the share of a scratchpad's words that are written in Latin letters.

For Hub datasets, whose text no world can read, it is the language-consistency reward of DeepSeek-R1 (arXiv
2501.12948v1, §2.3.2): the share of the words of a chain of thought that are in the target language. The paper
does not say how it tells a word's language. Here the script decides, which tells English from the Chinese
that the paper's model mixes with it, but not from German:

| text                                     | words              |
|------------------------------------------|--------------------|
| letters of the Latin script in a row     | one English word   |
| any other letter, such as an ideograph   | one foreign word   |
| digits, signs, commands such as `\frac`  | no word            |

Without words the reward is 0, so leaving the scratchpad out earns nothing.
"""

import re

from encore.worlds.answers import scratchpad
from encore.worlds.protocol import Problem

LATIN = "A-Za-zÀ-ÖØ-öø-ɏ"
COMMAND = re.compile(r"\\[A-Za-z]+")
WORD = re.compile(rf"[{LATIN}]+|[^\W\d_]")


def english(problem: Problem, completion: str) -> float:
    """Return the reward, from 0 to 1, in linear time; never raises."""
    words = WORD.findall(COMMAND.sub(" ", scratchpad(completion)))
    latin = sum(re.match(f"[{LATIN}]", word) is not None for word in words)
    return latin / max(1, len(words))
