"""The slips in the scratchpad of a sum: those that are not repaired, and lost carries."""

from encore.worlds.answers import scratchpad
from encore.worlds.protocol import Problem
from encore.worlds.steps import matches, texts
from encore.worlds.sums import STEP, operands_of, passes_ten

BETWEEN = ",|wait"  # separators of steps


def unrepaired(problem: Problem, completion: str) -> float:
    """Return 1 if a step before the last is wrong and is not corrected after a `wait`, else 0.

    The later steps then continue from a visible slip, to a wrong answer.
    """
    text = scratchpad(completion).replace(".", "").replace("wait", ",wait")
    parts = [part for part in text.split(",") if part not in ("", "wait")]
    wrong = set()
    for part, step in [
        *zip(parts, matches(STEP, [part.removeprefix("wait") for part in parts]), strict=True)
    ][:-1]:
        if step and sum(operands_of(step[1])) != int(step[2]):
            wrong.add(step[1])
        elif step and part.startswith("wait"):
            wrong.discard(step[1])
    return float(bool(wrong))


def _past_ten(completion: str) -> list[int]:
    """Return how far off each step past a ten is: its result less the sum of its operands."""
    steps = filter(None, matches(STEP, texts(completion, BETWEEN)))
    read = [(operands_of(step[1]), int(step[2])) for step in steps]
    return [result - sum(operands) for operands, result in read if passes_ten(operands)]


def carries(problem: Problem, completion: str) -> float:
    """Return 1 if a step passes a ten, else 0."""
    return float(bool(_past_ten(completion)))


def lost(problem: Problem, completion: str) -> float:
    """Return the share of the steps past a ten that are one too little; 0 without a step past a ten."""
    off = _past_ten(completion)
    return off.count(-1) / len(off) if off else 0.0
