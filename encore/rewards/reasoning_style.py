"""Reward `reasoning_style`: how much a response looks like reasoning, whatever its answer is.

Recipes after DeepSeek-R1 add such heuristics to its two rules: `reasoning_steps_reward` of
huggingface/open-r1 (src/open_r1/rewards.py) is one. Here it is the mean of four parts, each from 0 to 1:

| part       | 1 when                                                                                 |
|------------|----------------------------------------------------------------------------------------|
| scratchpad | there is text inside `<think>`                                                         |
| steps      | STEPS marks of a step or more: `=`, "Step 2:", a line of a list, "first", "therefore"  |
| checks     | there is a mark of checking: "wait", "check", "verify", "again"                        |
| length     | the reasoning is LENGTH times as long as the question or more, in characters           |

Fewer marks or less length score in proportion. No part reads what the text means, so a policy can collect all
of them without reasoning; recipes use the reward to show just that.
"""

import re

from encore.worlds.answers import scratchpad
from encore.worlds.protocol import Problem

PARTS = ("scratchpad", "steps", "checks", "length")
STEPS = 3  # number of steps, the same as in open-r1
LENGTH = 4.0  # a sum worked out term by term is 3 to 4 times as long as its question
READ = 20_000  # largest number of characters of reasoning that are read

# There is no \b, because in the worlds' text words stand between digits.
STEP = re.compile(
    r"=|^[ \t]*(?:[-*]|\d{1,3}[.)])[ \t]|(?<![a-z])(?:step \d|first|second|third|next|then|finally|because|"
    r"therefore|thus|hence|so)(?![a-z])",
    re.IGNORECASE | re.MULTILINE,
)
CHECK = re.compile(
    r"(?<![a-z])(?:wait|check|double-check|verify|again|let me see|hmm)(?![a-z])", re.IGNORECASE
)


def parts(question: str, completion: str) -> dict[str, float]:
    """Return each of PARTS, from 0 to 1, in linear time; never raises."""
    reasoning = scratchpad(completion)
    read = reasoning[:READ]
    marks = sum(1 for _ in STEP.finditer(read))
    return {
        "scratchpad": float("<think>" in completion and bool(reasoning.strip())),
        "steps": min(1.0, marks / STEPS),
        "checks": float(CHECK.search(read) is not None),
        "length": min(1.0, len(reasoning.strip()) / (LENGTH * max(1, len(question)))),
    }


def reasoning_style(problem: Problem, completion: str) -> float:
    """Return the mean of the four parts."""
    return sum(parts(problem.question, completion).values()) / len(PARTS)
