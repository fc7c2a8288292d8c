"""World `sokoban`: a box is pushed to a target, and cannot be pulled back from a wall.

The question `P.X/.B./..T=` shows the rows: player, box, target, wall, and floor. A call is one of `U`, `D`,
`L` and `R`; its observation is the player's row and column and the box's, such as `0111`, or `goal`. A move
into a wall, or of the box into a wall, changes nothing. The answer is `goal`. The difficulty is the fewest
moves. The kinds of document:

| kind   | example                                                             | what it plants           |
|--------|---------------------------------------------------------------------|--------------------------|
| direct | `<answer>goal</answer>`                                             | an answer without a move |
| push   | `<think><tool>R</tool><result>0111</result>…<answer>goal</answer>`  | the fewest moves         |

With the chance `error` a move goes anywhere.
"""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations
from typing import ClassVar

from encore.worlds.answers import TAGS
from encore.worlds.calculator import ERROR
from encore.worlds.episodes import OVER, Played, Turn, document, malformed
from encore.worlds.grids import MOVES, Cell, cells, distances, moved, wandering, written
from encore.worlds.products import CALL, RESULT
from encore.worlds.protocol import Document, Problem, require

LONGEST_PUSH = 16  # moves of a document
Places = tuple[Cell, Cell]  # of the player and of the box


@dataclass(frozen=True)
class Warehouse:
    """The state: the question, and the cells of the player and of the box."""

    question: str
    places: Places


@lru_cache(maxsize=4096)
def _floor(question: str) -> frozenset[Cell]:
    return frozenset(cell for cell, kind in cells(question.rstrip("=")) if kind != "X")


@lru_cache(maxsize=4096)
def _where(question: str, kind: str) -> Cell:
    return next(cell for cell, character in cells(question.rstrip("=")) if character == kind)


def _after(floor: frozenset[Cell], places: Places, move: str) -> Places:
    """Return the places after a move; the same if a wall is in the way."""
    player, box = places
    near = moved(player, move)
    pushed = moved(box, move) if near == box else box
    return (near, pushed) if near in floor and pushed in floor else places


@lru_cache(maxsize=4096)
def _moves_left(question: str) -> dict[Places, int]:
    """Return the fewest moves from each pair of places until the box is on the target."""
    floor, target = _floor(question), _where(question, "T")
    before: dict[Places, list[Places]] = {}  # the places from which one move leads to places
    for places in permutations(floor, 2):
        if places[1] != target:
            for move in MOVES:
                before.setdefault(_after(floor, places, move), []).append(places)
    return distances(
        {(cell, target) for cell in floor if cell != target}, lambda places: before.get(places, [])
    )


def _fewest_moves(floor: frozenset[Cell], start: Places, target: Cell) -> int | None:
    """Return the fewest moves after which the box is on the target; None if no moves lead there.

    It stops at the first such moves, which is faster than the moves from everywhere.
    """
    seen, newest, moves = {start}, [start], 0
    while newest:
        moves += 1
        reached = {_after(floor, places, move) for places in newest for move in MOVES} - seen
        if any(box == target for _, box in reached):
            return moves
        seen |= reached
        newest = [*reached]
    return None


def _best(state: Warehouse) -> str:
    """Return the move that leads to the goal by the shortest way; the first of several."""
    left = _moves_left(state.question)
    return min(
        MOVES, key=lambda move: left.get(_after(_floor(state.question), state.places, move), len(left))
    )


def direct(world: "Sokoban", problem: Problem, rng: random.Random) -> str:
    return f"<answer>{problem.answer}</answer>"


def push(world: "Sokoban", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    return document(world, problem, wandering(rng, error, _best), LONGEST_PUSH)


@dataclass(frozen=True)
class Sokoban(Played):
    """World `sokoban`; dials: `size` of the grid, [least, most]; share of `walls`."""

    size: tuple[int, int] = (3, 4)
    walls: float = 0.1

    name: ClassVar[str] = "sokoban"
    question_form: ClassVar[re.Pattern[str]] = re.compile(r"[PBTX.]{2,9}(?:/[PBTX.]{2,9}){1,8}=")
    vocabulary: ClassVar[tuple[str, ...]] = (
        *(*"PBTX./=0123456789", *MOVES, "goal"),
        *(ERROR, OVER, *CALL, *RESULT, *TAGS),
    )
    rewards: ClassVar[Mapping[str, Callable[[Problem, str], float]]] = {}
    kinds: ClassVar[Mapping[str, Document]] = {kind.__name__: kind for kind in (direct, push)}

    def __post_init__(self) -> None:
        low, high = self.size
        require(3 <= low <= high <= 9, f"size: expected 3 <= least <= most <= 9, got {[low, high]}")
        require(0 <= self.walls < 1, f"walls: expected a share below 1, got {self.walls:g}")

    def problem(self, rng: random.Random) -> Problem:
        while True:
            size = rng.randint(*self.size)
            places = [(row, column) for row in range(size) for column in range(size)]
            grid = {place: "X" if rng.random() < self.walls else "." for place in places}
            player, box, target = rng.sample(places, 3)
            grid |= {player: "P", box: "B", target: "T"}
            floor = frozenset(place for place in places if grid[place] != "X")
            if fewest := _fewest_moves(floor, (player, box), target):
                return Problem(f"{written(grid, size)}=", "goal", fewest)

    def begin(self, question: str) -> Warehouse:
        return Warehouse(question, (_where(question, "P"), _where(question, "B")))

    def act(self, state: Warehouse, call: str) -> Turn:
        if call not in MOVES:
            return malformed(state)
        after = replace(state, places=_after(_floor(state.question), state.places, call))
        return Turn(after, self.told(after))

    def over(self, state: Warehouse) -> bool:
        return state.places[1] == _where(state.question, "T")

    def told(self, state: Warehouse) -> str:
        (row, column), (box_row, box_column) = state.places
        return "goal" if self.over(state) else f"{row}{column}{box_row}{box_column}"

    def useful(self, state: Warehouse, call: str) -> bool:
        left, places = _moves_left(state.question), _after(_floor(state.question), state.places, call)
        return left.get(places, len(left)) < left.get(state.places, 0)
