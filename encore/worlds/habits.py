"""Habits of a search (Gandhi et al. 2025, arXiv 2503.01307, §2) in a scratchpad of world `countdown`.

The paper has a language model count them; here each habit has its own mark in the text:

| habit             | example                        | what it is                                    |
|-------------------|--------------------------------|-----------------------------------------------|
| verification      | `15+7=22:56no`, `8*7=56:56yes` | a result is compared with the target          |
| backtracking      | `15+7=22no3+5=8`               | a try is given up, another one begun          |
| subgoals          | `3+5=8,8*7=56`                 | a step goes on from the result before it      |
| backward_chaining | `56/7=8`                       | a try begins at the target                    |
| idling            | `...`                          | length that says nothing: the paper's control |

`sound_checks` is the share of a completion's checks that are true; as a metric, it is the mean over the
completions with a check against the target. It has to be high before a habit of checking can pay.
"""

import re
from collections.abc import Callable, Mapping

from encore.worlds.answers import scratchpad
from encore.worlds.protocol import Problem

CHECK = re.compile(r"=(-?[0-9]{1,9}):([0-9]{1,9})(yes|no)")
AGAIN = re.compile(r"no[0-9]")
STEP = re.compile(r"([0-9]{1,9})([+*/-])([0-9]{1,9})=(-?[0-9]{1,9})(?![0-9])")
NEXT = re.compile(r",([0-9]{1,9})[+*/-]([0-9]{1,9})=")


def _target(problem: Problem) -> str:
    return problem.question.rpartition(":")[2]


def verification(problem: Problem, completion: str) -> float:
    """Return 1 if a result is compared with the target, else 0."""
    checks = CHECK.findall(scratchpad(completion))
    return float(any(target == _target(problem) for _, target, _ in checks))


def sound_checks(problem: Problem, completion: str) -> float:
    """Return the share of checks that truly say whether a result is the target; 0 without a check."""
    checks = CHECK.findall(scratchpad(completion))
    right = [
        target == _target(problem) and (result == target) == (said == "yes")
        for result, target, said in checks
    ]
    return sum(right) / len(right) if right else 0.0


def backtracking(problem: Problem, completion: str) -> float:
    """Return 1 if another try follows a try that was given up, else 0."""
    return float(bool(AGAIN.search(scratchpad(completion).replace(".", ""))))


def subgoals(problem: Problem, completion: str) -> float:
    """Return 1 if a step continues from the result of the step before it, else 0."""
    text = scratchpad(completion).replace(".", "")
    following = ((step[4], NEXT.match(text, step.end())) for step in STEP.finditer(text))
    return float(any(after and result in after.groups() for result, after in following))


def backward_chaining(problem: Problem, completion: str) -> float:
    """Return 1 if the first step of a try works on the target, which is not among the numbers, else 0."""
    numbers, _, target = problem.question.partition(":")
    tries = scratchpad(completion).replace(".", "").split("no")
    first = [step for step in map(STEP.match, tries) if step]
    return float(target not in numbers.split(",") and any(target in (step[1], step[3]) for step in first))


def idling(problem: Problem, completion: str) -> float:
    """Return 1 if the scratchpad has a dot, else 0."""
    return float("." in scratchpad(completion))


HABITS: Mapping[str, Callable[[Problem, str], float]] = {
    habit.__name__: habit
    for habit in (verification, sound_checks, backtracking, subgoals, backward_chaining, idling)
}
