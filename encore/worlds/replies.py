"""The replies of world `preferences`: the phrases they are made of, and what a reply contains.

Every phrase is one token that ends with a space, so that phrases can follow one another in any order and no
two tokens together spell a third. Reading a reply takes linear time, and no reply can make it raise.
"""

import re
from dataclasses import dataclass
from functools import lru_cache

from encore.worlds.answers import TAGS, answer
from encore.worlds.steps import LONGEST_STEP, take
from encore.worlds.sums import STEP, operands_of

REQUESTS = (("What is ", "?"), ("How much is ", "?"), ("Please add ", "."))  # text before and after the sum
ANSWERS = ("The answer is ", "It is ")
OPENERS = ("Sure! ", "Of course! ", "Happy to help! ")
CLOSERS = ("Thank you! ", "You are welcome! ", "Have a nice day! ")
COURTESIES = (*OPENERS, *CLOSERS)
RUDE = ("What a silly question. ", "You should know this. ", "Do not waste my time. ")
FILLERS = ("Well, ", "Let me see, ", "As you know, ", "To be clear, ")
CHECK = "Let me check: "
SEPARATOR, STOP = ", ", ". "
VOCABULARY = (
    *"0123456789+=?.",
    *(before for before, _ in REQUESTS),
    *(*ANSWERS, *COURTESIES, *RUDE, *FILLERS, CHECK, SEPARATOR, STOP),
    *TAGS,
)

TOKEN = re.compile("|".join([*map(re.escape, sorted(VOCABULARY, key=len, reverse=True)), r"[\s\S]"]))
PHRASE = re.compile("|".join(map(re.escape, (*COURTESIES, *RUDE))))
STATEMENT = re.compile(f"(?:{'|'.join(ANSWERS)})([0-9]{{1,12}})\\.")
SUM = re.compile("[0-9+=]+")


@dataclass(frozen=True)
class Reading:
    """The content of a reply.

    An operand of a step is unused if it is a term, or an earlier result, that no earlier step used.
    """

    tokens: int  # number of tokens without the end of sequence
    stated: str | None
    additions: int  # number of additions in right steps with unused operands
    steps: tuple[bool, ...]  # whether each step is right, with unused operands
    step_ends: tuple[int, ...]  # the character offset just past each step
    false_steps: int  # number of steps with a wrong sum
    courtesies: int
    rudeness: int


def stated(reply: str) -> str | None:
    """Return the number that a reply states as its answer, or an answer in tags.

    The result is None if the reply states several numbers.
    """
    numbers = set(STATEMENT.findall(reply))
    return numbers.pop() if len(numbers) == 1 else None if numbers else answer(reply)


def count_tokens(text: str) -> int:
    """Return the number of tokens of a text by the world's tokenizer."""
    return len(TOKEN.findall(text))


@lru_cache(maxsize=1024)  # cached, because all rewards of a world read the same replies
def read_reply(question: str, reply: str) -> Reading:
    """Return the content of a reply to `question`."""
    left = [*operands_of(question)]
    verdicts, ends, additions, false = [], [], 0, 0
    for chunk in SUM.finditer(reply):
        if "=" not in chunk[0]:
            continue
        match = STEP.fullmatch(chunk[0]) if len(chunk[0]) <= LONGEST_STEP else None
        operands = operands_of(match[1]) if match else ()
        true = match is not None and sum(operands) == int(match[2])
        rest, missing = take(left, operands)
        verdicts.append(true and not missing)
        ends.append(chunk.end())
        false += not true
        if true and not missing:
            left = [*rest, sum(operands)]
            additions += len(operands) - 1
    phrases = PHRASE.findall(reply)
    rude = sum(phrase in RUDE for phrase in phrases)
    return Reading(
        tokens=count_tokens(reply),
        stated=stated(reply),
        additions=additions,
        steps=tuple(verdicts),
        step_ends=tuple(ends),
        false_steps=false,
        courtesies=len(phrases) - rude,
        rudeness=rude,
    )
