"""Small grids, whose rows a question writes from the top, separated by slashes."""

import random
from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

Cell = tuple[int, int]  # row and column
State = TypeVar("State", bound=Hashable)
MOVES = {"U": (-1, 0), "D": (1, 0), "L": (0, -1), "R": (0, 1)}


def cells(grid: str) -> Iterator[tuple[Cell, str]]:
    """Yield each cell of a grid and its character."""
    for row, line in enumerate(grid.split("/")):
        for column, character in enumerate(line):
            yield (row, column), character


def written(grid: Mapping[Cell, str], size: int) -> str:
    """Return a square grid of `size` rows as text."""
    return "/".join("".join(grid[row, column] for column in range(size)) for row in range(size))


def wandering(rng: random.Random, error: float, best: Callable[[Any], str]) -> Callable[[Any], str]:
    """Return a choice of moves: the best from a state or, with the chance `error`, any."""
    return lambda state: rng.choice([*MOVES]) if rng.random() < error else best(state)


def moved(cell: Cell, move: str) -> Cell:
    """Return the cell next to a cell, which may lie outside of the grid."""
    return cell[0] + MOVES[move][0], cell[1] + MOVES[move][1]


def distances(goals: set[State], before: Callable[[State], Iterable[State]]) -> dict[State, int]:
    """Return the fewest moves from each state to a goal; states from which none can be reached are missing.

    `before` returns the states from which one move leads to a state.
    """
    known, queue = dict.fromkeys(goals, 0), deque(sorted(goals))  # type: ignore[type-var]
    while queue:
        state = queue.popleft()
        for earlier in before(state):
            if earlier not in known:
                known[earlier] = known[state] + 1
                queue.append(earlier)
    return known
