"""World `frozen_lake`: a walk over ice with holes, on which a step may slip; a hole ends it.

The question `SFF/FHF/FFG2=` shows the rows of the lake: start, frozen, hole, goal. Behind them stands the
chance of slipping, in tenths: then a step goes to the left or right of where it was to go. A call is one of
`U`, `D`, `L` and `R`, and its observation the cell where the step ends: its row and column, `hole` or `goal`.
The answer is `goal`. The difficulty is the length of the shortest way. The kinds of document:

| kind   | example                                                             | what it plants           |
|--------|---------------------------------------------------------------------|--------------------------|
| direct | `<answer>goal</answer>`                                             | an answer without a walk |
| walk   | `<think><tool>R</tool><result>01</result>…<answer>goal</answer>`    | the shortest way         |

With the chance `error` a step of a walk goes anywhere. Reward `discounted` is 0.9 to the power of the steps
of a walk that arrives, and 0 for another.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

from encore.worlds.answers import TAGS
from encore.worlds.calculator import ERROR
from encore.worlds.episodes import OVER, Played, Turn, document, last_state, malformed
from encore.worlds.grids import MOVES, Cell, cells, distances, moved, wandering, written
from encore.worlds.products import CALL, RESULT
from encore.worlds.protocol import Document, Problem, require

ASIDE = {"U": "LR", "D": "LR", "L": "UD", "R": "UD"}
LONGEST_WALK = 12  # steps of a document
DISCOUNT = 0.9  # of reward `discounted`, for each step


@dataclass(frozen=True)
class Walk:
    """The state of a walk: the question, the cell, and the number of steps so far."""

    question: str
    cell: Cell
    steps: int = 0


@lru_cache(maxsize=4096)
def _lake(question: str) -> dict[Cell, str]:
    return dict(cells(question.rstrip("=")[:-1]))


@lru_cache(maxsize=4096)
def _ways(question: str) -> dict[Cell, int]:
    """Return the fewest steps from each cell to the goal, without a slip."""
    lake = _lake(question)

    def before(cell: Cell) -> Iterator[Cell]:
        yield from (near for move in MOVES if lake.get(near := moved(cell, move), "H") in "SF")

    return distances({cell for cell, kind in lake.items() if kind == "G"}, before)


def _step(walk: Walk, move: str) -> Cell:
    """Return where a step ends if it does not slip: at the border it stays."""
    near = moved(walk.cell, move)
    return near if near in _lake(walk.question) else walk.cell


def _best(walk: Walk) -> str:
    """Return the step that leads to the goal by the shortest way; the first of several."""
    ways = _ways(walk.question)
    return min(MOVES, key=lambda move: ways.get(_step(walk, move), len(ways) + 1))


def direct(world: "FrozenLake", problem: Problem, rng: random.Random) -> str:
    return f"<answer>{problem.answer}</answer>"


def walk(world: "FrozenLake", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    return document(world, problem, wandering(rng, error, _best), LONGEST_WALK)


def _discounted(problem: Problem, completion: str) -> float:
    """Return the reward of a walk that is worth less the more steps it takes."""
    lake = FrozenLake()
    if not lake.verify(problem, completion):
        return 0.0
    walked: Walk = last_state(lake, problem.question, completion)
    return DISCOUNT**walked.steps


@dataclass(frozen=True)
class FrozenLake(Played):
    """World `frozen_lake`; dials: `size` of the lake, [least, most]; share of `holes`; `slips`, in tenths."""

    size: tuple[int, int] = (3, 4)
    holes: float = 0.25
    slips: int = 0

    name: ClassVar[str] = "frozen_lake"
    question_form: ClassVar[re.Pattern[str]] = re.compile(r"[SFHG]{2,9}(?:/[SFHG]{2,9}){1,8}[0-9]=")
    vocabulary: ClassVar[tuple[str, ...]] = (
        *(*"SFHG/=0123456789", *MOVES, "hole", "goal"),
        *(ERROR, OVER, *CALL, *RESULT, *TAGS),
    )
    rewards: ClassVar[Mapping[str, Callable[[Problem, str], float]]] = {"discounted": _discounted}
    kinds: ClassVar[Mapping[str, Document]] = {kind.__name__: kind for kind in (direct, walk)}

    def __post_init__(self) -> None:
        low, high = self.size
        require(2 <= low <= high <= 9, f"size: expected 2 <= least <= most <= 9, got {[low, high]}")
        require(0 <= self.holes < 1, f"holes: expected a share below 1, got {self.holes:g}")
        require(0 <= self.slips <= 9, f"slips: expected tenths from 0 to 9, got {self.slips}")

    def problem(self, rng: random.Random) -> Problem:
        while True:
            size = rng.randint(*self.size)
            places = [(row, column) for row in range(size) for column in range(size)]
            lake = {place: "H" if rng.random() < self.holes else "F" for place in places}
            start, goal = rng.sample(places, 2)
            lake |= {start: "S", goal: "G"}
            question = f"{written(lake, size)}{self.slips}="
            if start in _ways(question):
                return Problem(question, "goal", _ways(question)[start])

    def begin(self, question: str) -> Walk:
        return Walk(question, next(cell for cell, kind in _lake(question).items() if kind == "S"))

    def act(self, state: Walk, call: str) -> Turn:
        if call not in MOVES:
            return malformed(state)
        luck = random.Random(f"{state.question} {state.steps}")
        slipped = 10 * luck.random() < int(state.question[-2])
        cell = _step(state, luck.choice(ASIDE[call]) if slipped else call)
        after = Walk(state.question, cell, state.steps + 1)
        return Turn(after, self.told(after))

    def over(self, state: Walk) -> bool:
        return _lake(state.question)[state.cell] in "HG"

    def told(self, state: Walk) -> str:
        kind = _lake(state.question)[state.cell]
        return {"H": "hole", "G": "goal"}.get(kind, f"{state.cell[0]}{state.cell[1]}")

    def useful(self, state: Walk, call: str) -> bool:
        ways = _ways(state.question)
        return ways.get(_step(state, call), len(ways)) < ways.get(state.cell, 0)
