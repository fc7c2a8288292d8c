"""The last rollout of a training: its questions, each with the group of completions sampled for it."""

import json
import math
from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from analysis.watch.curve import LARGEST
from analysis.watch.growing import last_lines

# bytes that are read from the end of the file; the next size is tried if they lack a whole rollout
SIZES = (2**18, 2**21, 2**24)
LONGEST = 20_000  # largest number of characters of a text that are shown
QUESTIONS = 64  # largest number of questions of a rollout that are shown


class Completion(NamedTuple):
    """A sampled completion; None stands for a value that is missing in the file."""

    text: str
    reward: float | None
    rewards: Mapping[str, float | None]  # the value of each reward function
    advantage: float | None  # the advantage, or its mean over tokens if they have different ones
    tokens: int | None
    ended: bool | None  # False if the completion was cut at the cap
    kept: bool | None  # whether the policy learns from the completion, if some are left out


class Question(NamedTuple):
    """A question, and the group of completions sampled for it."""

    prompt: str
    answer: str  # the right answer; "" if it is not known
    group: tuple[Completion, ...]


class Rollout(NamedTuple):
    """The completions that were sampled at a training step, by question."""

    step: int
    questions: tuple[Question, ...]


class _Row(NamedTuple):
    step: int
    prompt: str
    answer: str
    completion: Completion


def last(path: Path) -> Rollout | None:
    """Return the newest rollout in the file completions.jsonl; None if it has no rollout.

    The file may end within a group or a line. The result has the complete groups of the newest step that has
    a complete group.
    """
    for size in SIZES:
        lines, complete = last_lines(path, size)
        rows = [row for row in map(_row, lines) if row]
        groups = [tuple(group) for _, group in groupby(rows, key=lambda row: (row.step, row.prompt))]
        if not complete:
            groups = groups[1:]  # the beginning of this group lies before the part that was read
        usual = Counter(map(len, groups)).most_common(1)[0][0] if groups else 0
        whole = [group for group in groups if len(group) >= usual]
        steps = {group[0].step for group in groups}
        if groups and (len(steps) > 1 or complete or size == SIZES[-1]):
            newest = whole[-1][0].step
            shown = [group for group in whole if group[0].step == newest][-QUESTIONS:]
            return Rollout(newest, tuple(map(_question, shown)))
    return None


def _question(rows: tuple[_Row, ...]) -> Question:
    return Question(rows[0].prompt, rows[0].answer, tuple(row.completion for row in rows))


def _row(line: str) -> _Row | None:
    """Return the completion in a line of completions.jsonl; None if the line is no row of a rollout."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(row, dict):
        return None
    step, prompt, text = (row.get(key) for key in ("step", "prompt", "completion"))
    if not isinstance(prompt, str) or not isinstance(text, str):
        return None
    if not isinstance(step, int) or not 0 <= step <= LARGEST:
        return None
    rewards, tokens, answer = row.get("rewards"), _number(row.get("tokens")), row.get("answer")
    completion = Completion(
        text[:LONGEST],
        _number(row.get("reward")),
        {name: _number(value) for name, value in rewards.items()} if isinstance(rewards, dict) else {},
        _number(row.get("advantage")),
        None if tokens is None else int(tokens),
        _flag(row.get("eos")),
        _flag(row.get("kept")),
    )
    return _Row(step, prompt[:LONGEST], answer[:LONGEST] if isinstance(answer, str) else "", completion)


def _number(value: object) -> float | None:
    """Return a finite number; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) < 1e300 and math.isfinite(value) else None


def _flag(value: object) -> bool | None:
    return value if isinstance(value, bool) else None
