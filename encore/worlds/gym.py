"""The tasks of the library reasoning-gym as worlds: `task: {reasoning_gym: chain_sum, min_terms: 2}`.

The library generates the questions and scores the answers. Other keys of the task are fields of the task's
configuration class. Drawing and scoring run in a sandbox (encore/worlds/gym_inside.py), because scorers read
what a policy has written, and because some problems depend on the order of sets, which a sandbox fixes.
"""

import json
import logging
import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

from encore.errors import UserError, nearest
from encore.sandbox.pool import Job, Limits, Pool
from encore.sandbox.values import Failed
from encore.worlds.answers import answer
from encore.worlds.final_answer import final_answer
from encore.worlds.protocol import Document, Problem

LIBRARY = "reasoning_gym"  # name of the module, and of the key of a task
LOADED = (LIBRARY, "pydantic", "numpy")  # modules that each sandbox loads once
RIGHT = 0.99  # least score of a right answer, as in gym_inside.py
LONGEST = 20_000  # characters of an answer; a longer answer is wrong
TOGETHER = 32  # number of calls in a program
MOST_DRAWN = 256  # largest number of problems that are drawn ahead
ATTEMPTS = 200  # largest number of attempts in a row without a problem
KEPT = 50_000  # largest number of problems, and of scores, that a process remembers for a task
BUDGET = 60.0  # seconds for scoring answers together; answers that are not scored by then count as wrong
log = logging.getLogger(__name__)
LIMITS = Limits(wall=20.0, budget=3600.0, cpu=60, memory=4 << 30, output=1 << 24, descriptors=64)


@dataclass(frozen=True)
class _Drawn:
    """A problem. `entry` is what the library needs for scoring, pickled; only a sandbox reads it."""

    question: str
    answer: str
    entry: bytes


@dataclass(frozen=True)
class Gym:
    """The task of reasoning-gym called `task`; `keys`: the keys and values of its configuration, as JSON.

    `drawn` and `scored` remember problems, by their number, and scores, by problem number and answer.
    """

    task: str
    keys: str = "{}"
    drawn: dict[int, _Drawn | Failed | None] = field(default_factory=dict, compare=False, repr=False)
    scored: dict[tuple[int, str], float] = field(default_factory=dict, compare=False, repr=False)

    vocabulary: ClassVar[tuple[str, ...]] = ()
    kinds: ClassVar[Mapping[str, Document]] = {}

    @property
    def name(self) -> str:
        """The world's name for use in messages."""
        return f"{LIBRARY} {self.task}"

    @property
    def rewards(self) -> Mapping[str, Callable[[Problem, str], float]]:
        """The reward `partial`: the library's score of an answer, from 0 to 1."""
        return {"partial": lambda problem, completion: self.scores([problem], [completion])[0]}

    def problem(self, rng: random.Random) -> Problem:
        """Draw a problem, by a random number from `rng`.

        Raises UserError if the library refuses the task, or if ATTEMPTS numbers give no problem.
        """
        _check_task(self.task, self.keys)
        for _ in range(ATTEMPTS):
            ahead = random.Random()
            ahead.setstate(rng.getstate())
            item = _number(rng)
            if item not in self.drawn:
                count = min(MOST_DRAWN, max(8, len(self.drawn)))
                self._draw([_number(ahead) for _ in range(count)])
            drawn = self.drawn[item]
            if isinstance(drawn, _Drawn):
                return Problem(drawn.question, drawn.answer, 0, number=item)
            if isinstance(drawn, Failed) and drawn.why in ("Late", "time"):
                break
        why = f" ({drawn.why})" if isinstance(drawn, Failed) else ""
        raise UserError(f"task: {self.name} makes no problem with these keys{why}; give it others")

    def verify(self, problem: Problem, completion: str) -> bool:
        """Return whether the library's scorer finds the answer right."""
        return right(self.scores([problem], [completion])[0])

    def scores(self, problems: Sequence[Problem], completions: Sequence[str]) -> list[float]:
        """Return the library's scores (completions,), 0 for a completion without an answer.

        It never raises, whatever the text: an answer at which a scorer fails or hangs has score 0.
        """
        answers = [_answer(completion) for completion in completions]
        pairs = zip(problems, answers, strict=True)
        asked = [(problem.number, text or "") for problem, text in pairs]
        if len(self.scored) > KEPT:
            self.scored.clear()
        new = [
            pair for pair in dict.fromkeys(asked) if 0 < len(pair[1]) <= LONGEST and pair not in self.scored
        ]
        calls = [f"task.score({item}, {self._entry(item)!r}, {text!r})" for item, text in new]
        values = zip(new, self._values(calls, BUDGET), strict=True)
        self.scored.update((pair, value) for pair, value in values if isinstance(value, float))
        return [self.scored.get(pair, 0.0) for pair in asked]

    def steps(self, problem: Problem, completion: str) -> list[bool]:
        """Return [], because the library verifies answers alone."""
        return []

    def step_ends(self, problem: Problem, completion: str) -> list[int]:
        """Return [], as `steps` does."""
        return []

    def document(self, problem: Problem, kind: str, rng: random.Random, **dials: Any) -> str:
        """Raise UserError: the library writes no documents."""
        raise UserError(f"task: {self.name} writes no documents to learn from; take a task of our worlds")

    def _entry(self, item: int) -> bytes:
        drawn = self.drawn.get(item)
        return drawn.entry if isinstance(drawn, _Drawn) else b""

    def _draw(self, items: Sequence[int]) -> None:
        if len(self.drawn) > KEPT:
            self.drawn.clear()
        items = [item for item in items if item not in self.drawn]
        values = self._values([f"task.draw({item})" for item in items], float("inf"))
        for item, value in zip(items, values, strict=True):
            self.drawn[item] = _Drawn(*value) if isinstance(value, tuple) else value

    def _values(self, calls: Sequence[str], budget: float) -> list[Any]:
        """Return the values (calls,) of `calls`, expressions that use the variable `task`.

        A value is Failed if its call raised, hung or was not done within `budget` seconds.
        """
        return _values(f"{program()}\ntask = Task({self.task!r}, {self.keys!r})", calls, budget)


@cache
def _made(name: str, keys: str) -> Gym:
    return Gym(name, keys)  # there is one world for each task, because it remembers what it has drawn


def make(task: Mapping[str, Any]) -> Gym:
    """Return the world that the keys of a recipe's `task` describe.

    A key that the library refuses is reported only when a problem is drawn.
    """
    name, keys = task[LIBRARY], {key: value for key, value in task.items() if key not in ("world", LIBRARY)}
    return _made(str(name), json.dumps(keys, sort_keys=True, default=str))


@cache
def _check_task(name: str, keys: str) -> None:
    """Raise UserError if the library has no such task, or refuses the task's keys."""
    (refusal,) = _values(program(), [f"mistake({name!r}, {keys!r})"], BUDGET)
    if isinstance(refusal, Failed):
        raise UserError(f"task.{LIBRARY}: {name}: the library does not load in the sandbox ({refusal.why})")
    if refusal is None:
        return
    key, words, valid = refusal
    if valid and not key:
        raise UserError(f'task.{LIBRARY}: no task "{name}"{nearest(name, valid)}')
    if valid or words is None:
        raise UserError(f'task.{key}: task "{name}" of reasoning-gym has no key "{key}"{nearest(key, valid)}')
    value = f", got {json.loads(keys)[key]!r}" if key in json.loads(keys) else ""
    raise UserError(f"task.{key or LIBRARY}: {words[:1].lower()}{words[1:]}{value}")


def right(score: float) -> bool:
    """Return whether a score of the library means a right answer."""
    return score >= RIGHT


def _number(rng: random.Random) -> int:
    return 1 + rng.getrandbits(31)


def _answer(completion: str) -> str | None:
    r"""Return the text in the only `<answer>`, or else in a `\boxed{…}` or after a mark `####`, or None."""
    tagged = answer(completion)
    return final_answer(completion) if tagged is None or "\\boxed" in tagged else tagged


def _values(source: str, calls: Sequence[str], budget: float) -> list[Any]:
    """Return the values (calls,) of `calls` after the program `source`; Failed for a missing value.

    A program makes TOGETHER calls. If it runs out of time, the unfinished calls are made anew by another
    program. A call that is unfinished though it was a program's first has failed, and so have the calls that
    are left after `budget` seconds.
    """
    values: dict[int, Any] = {}
    end = time.monotonic() + budget
    parts = [range(start, min(start + TOGETHER, len(calls))) for start in range(0, len(calls), TOGETHER)]
    while parts and time.monotonic() < end:
        results = _pool(os.getpid()).run([Job(source, tuple(calls[i] for i in part)) for part in parts])
        left = []
        for part, result in zip(parts, results, strict=True):
            lost = [place for place, value in enumerate(result.values) if value == Failed("no value")]
            done = lost[0] if lost else 0 if result.ended in ("lost", "too long") else len(part)
            values |= {part[place]: result.values[place] for place in range(done)}
            if done == 0:
                values[part[0]], done = Failed(result.ended), 1
            if part[done:]:
                left.append(part[done:])
        parts = left
    if parts:
        log.warning("%d of %d answers were not scored within %g s", sum(map(len, parts)), len(calls), budget)
    return [values.get(i, Failed("time")) for i in range(len(calls))]


@cache
def program() -> str:
    """Return the source of gym_inside.py."""
    return files("encore.worlds").joinpath("gym_inside.py").read_text(encoding="utf-8")


@cache
def _pool(pid: int) -> Pool:
    """Return the pool of sandboxes of the process with id `pid`; its sandboxes load the library."""
    return Pool(min(4, os.cpu_count() or 1), LIMITS, LOADED)
