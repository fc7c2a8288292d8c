"""World `bandit_arms`: which of several arms wins most often, for a policy that may pull them first.

The question `abc82 4821=` names the arms; then the chance of the best arm and of the others, in tenths; then
the game, a number that decides which arm is best and what each pull brings. A call is an arm, and its
observation 1 or 0: it wins or it does not. The answer is the best arm, which only pulls can tell. The
difficulty is the number of arms. The kinds of document:

| kind    | example                                                        | what it plants                |
|---------|----------------------------------------------------------------|-------------------------------|
| direct  | `<answer>b</answer>`                                           | guesses, a share `right`      |
| explore | `<think><tool>a</tool><result>0</result>…<answer>b</answer>`   | `pulls` of each arm, and the  |
|         |                                                                | arm that won most often       |
| greedy  | `<think><tool>a</tool><result>1</result>…<answer>a</answer>`   | pulls until an arm wins       |
"""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from encore.worlds.answers import TAGS, answer
from encore.worlds.calculator import ERROR
from encore.worlds.episodes import OVER, Played, Turn, calls, document, malformed, play
from encore.worlds.products import CALL, RESULT
from encore.worlds.protocol import Document, Problem, require

ARMS = "abcde"
GAMES = 10_000
MOST_PULLS = 30  # of a document


@dataclass(frozen=True)
class Pulls:
    """The state: the question, and each pull so far with what it brought."""

    question: str
    brought: tuple[tuple[str, int], ...] = ()

    def of(self, arm: str) -> list[int]:
        """Return what the pulls of an arm brought."""
        return [won for pulled, won in self.brought if pulled == arm]


def _arms_of(question: str) -> str:
    return question.partition(" ")[0].rstrip("0123456789")


def _best_arm(question: str) -> str:
    """Return the arm that the game of a question favours."""
    return random.Random(f"best {question}").choice(_arms_of(question))


def _mean(wins: list[int]) -> float:
    return sum(wins) / len(wins) if wins else 0.0


def direct(world: "BanditArms", problem: Problem, rng: random.Random, *, right: float = 0.3) -> str:
    others = _arms_of(problem.question).replace(problem.answer, "")
    return f"<answer>{problem.answer if rng.random() < right else rng.choice(others)}</answer>"


def explore(world: "BanditArms", problem: Problem, rng: random.Random, *, pulls: float = 3) -> str:
    plan = [*_arms_of(problem.question)] * int(pulls)
    rng.shuffle(plan)
    return document(
        world,
        problem,
        lambda state: plan[len(state.brought)] if len(state.brought) < len(plan) else None,
        MOST_PULLS,
    )


def greedy(world: "BanditArms", problem: Problem, rng: random.Random) -> str:
    arms = rng.sample(_arms_of(problem.question), len(_arms_of(problem.question)))

    def choose(state: Pulls) -> str | None:
        won = any(brought for _, brought in state.brought)
        return None if won or len(state.brought) == len(arms) else arms[len(state.brought)]

    return document(world, problem, choose, MOST_PULLS)


def _winnings(problem: Problem, completion: str) -> float:
    """Return the share of a completion's pulls that win; 0 without a pull."""
    world = BanditArms()
    turns = play(world, problem.question, [call for call, _ in calls(completion)])
    brought = [int(turn.observation) for _, turn in turns if turn.good]
    return _mean(brought)


@dataclass(frozen=True)
class BanditArms(Played):
    """World `bandit_arms`; dials: number of `arms`; chances of the `best` and of the `rest`, in tenths."""

    arms: int = 3
    best: int = 8
    rest: int = 2

    name: ClassVar[str] = "bandit_arms"
    question_form: ClassVar[re.Pattern[str]] = re.compile(r"[a-e]{2,5}[0-9]{2} [0-9]{1,4}=")
    vocabulary: ClassVar[tuple[str, ...]] = (*ARMS, *"0123456789 =", ERROR, OVER, *CALL, *RESULT, *TAGS)
    answer_suffices: ClassVar[bool] = True
    rewards: ClassVar[Mapping[str, Callable[[Problem, str], float]]] = {"winnings": _winnings}
    kinds: ClassVar[Mapping[str, Document]] = {kind.__name__: kind for kind in (direct, explore, greedy)}

    def __post_init__(self) -> None:
        require(2 <= self.arms <= len(ARMS), f"arms: expected from 2 to {len(ARMS)}, got {self.arms}")
        ordered = 0 <= self.rest < self.best <= 9
        require(ordered, f"best: expected 0 <= rest < best <= 9, got rest {self.rest} and best {self.best}")

    def problem(self, rng: random.Random) -> Problem:
        question = f"{ARMS[: self.arms]}{self.best}{self.rest} {rng.randrange(GAMES)}="
        return Problem(question, _best_arm(question), self.arms)

    def begin(self, question: str) -> Pulls:
        return Pulls(question)

    def act(self, state: Pulls, call: str) -> Turn:
        question = state.question
        if len(call) != 1 or call not in _arms_of(question):
            return malformed(state)
        best, rest = (int(digit) for digit in question.partition(" ")[0][-2:])
        chance = best if call == _best_arm(question) else rest
        # each arm has its own luck, so that the order of pulls tells nothing of it
        luck = random.Random(f"{question} {call} {len(state.of(call))}")
        won = int(10 * luck.random() < chance)
        return Turn(Pulls(question, (*state.brought, (call, won))), str(won))

    def over(self, state: Pulls) -> bool:
        return False

    def told(self, state: Pulls) -> str:
        """Return the arm that has won most often for its pulls; the first of several."""
        return max(_arms_of(state.question), key=lambda arm: _mean(state.of(arm)))

    def useful(self, state: Pulls, call: str) -> bool:
        return True

    def verify(self, problem: Problem, completion: str) -> bool:
        """Return whether the answer is the best arm, by whatever pulls."""
        return answer(completion) == problem.answer
