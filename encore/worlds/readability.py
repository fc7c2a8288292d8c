"""Two measures of how well a completion of world `bilingual` can be read.

They take linear time, and no completion can make them raise.

| measure              | of the scratchpad, from 0 to 1                                                    |
|----------------------|-----------------------------------------------------------------------------------|
| language_consistency | the share of its words in the language that the question asks for                 |
| readability          | 0 unless the format is right and the answer a number; else the product of         |
|                      | - one language: the share of its words in the more frequent one, asked for or not |
|                      | - tidy: the share of its parts, between commas, that are one step and no dots     |
|                      | - not repetitive: the share of its parts that repeat no earlier part              |

language_consistency is the reward of DeepSeek-R1 (arXiv 2501.12948, §2.3.2); readability, which the paper
leaves to people, is ours.

A scratchpad without words has 0 for both, so leaving it out earns nothing; nor does writing it in digits,
which are words of neither language. Whether steps are right does not count.
"""

import re

from encore.worlds.answers import answer, formatted, scratchpad
from encore.worlds.languages import LANGUAGES, as_symbols, spoken
from encore.worlds.protocol import Problem
from encore.worlds.steps import matches
from encore.worlds.sums import STEP, operands_of

# the beginning of a question, which asks for a language
MARKS = {"english": "English: ", "spanish": "Spanish: "}
SUMMARIES = {"english": "The sum is ", "spanish": "La suma es "}  # the phrase that may stand before an answer
INTEGER = re.compile("-?[0-9]+")


def asked(problem: Problem) -> str:
    """Return the language that a question asks for, or the first of LANGUAGES if it asks for none."""
    return next((name for name, mark in MARKS.items() if problem.question.startswith(mark)), LANGUAGES[0])


def stated(completion: str) -> str | None:
    """Return the text of the only `<answer>` element, without a summary before it; None without one."""
    text = answer(completion)
    if text is None:
        return None
    summary = next(filter(text.startswith, SUMMARIES.values()), "")
    return text.removeprefix(summary)


def language_consistency(problem: Problem, completion: str) -> float:
    """Return the share of the scratchpad's words in the language asked for; 0 without words."""
    words = spoken(completion)
    return words[asked(problem)] / max(1, words.total())


def readability(problem: Problem, completion: str) -> float:
    """Measure how far a scratchpad that leads to an answer is in one language, tidy and not repetitive.

    Equal parts count as repetitions only as far as there are more parts than the sum needs, because a step
    such as `3+0=3` may be needed twice.
    """
    words = spoken(completion)
    parts = [part for part in as_symbols(scratchpad(completion)).split(",") if part]
    if not parts or not formatted(completion) or not INTEGER.fullmatch(stated(completion) or ""):
        return 0.0
    one_language = max(words[language] for language in LANGUAGES) / max(1, words.total())
    tidy = sum(match is not None for match in matches(STEP, parts)) / len(parts)
    spare = max(0, len(parts) - (len(operands_of(problem.question)) - 1))
    repeated = min(len(parts) - len(set(parts)), spare)
    return one_language * tidy * (1 - repeated / len(parts))
