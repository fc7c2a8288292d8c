"""Worlds with a state: the question begins an episode, and each call of the policy changes it.

    tool: {name: frozen_lake, calls: 8, longest: 2}

A call stands between the tags of world `products`, as in `<tool>R</tool>`; the sampler puts the observation
behind it, as in `<result>01</result>` (encore/sampling/tools.py). Observations follow from the question and
the calls alone. So a verifier plays a completion's calls again and needs no record of the episode, a text
that forges an observation changes nothing, and a resumed run sees the same episodes. What is random in a
world, such as ice on which a step slips, is drawn by the question and the number of the call: all completions
of a prompt meet the same luck, and no other prompt tells it. A call beyond the tool's number of answers acts
too, but nothing is observed after it.
"""

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from encore.worlds.answers import answer
from encore.worlds.calculator import ERROR
from encore.worlds.documents import tagged
from encore.worlds.products import CALL, RESULT
from encore.worlds.protocol import Problem

CALLED = re.compile(r"<tool>([^<>]{0,100})</tool>")
MOST = 64  # calls of a completion that are played; further calls change nothing
OVER = "over"  # the observation after the end of an episode


@dataclass(frozen=True)
class Turn:
    """A turn of an episode: the state after a call, and the observation.

    `good`: whether the call was well formed. `reward`: the call's own reward, and `shown`: the state as text
    for the log, both None in a world that has none.
    """

    state: Any
    observation: str
    good: bool = True
    reward: float | None = None
    shown: str | None = None


class Acting(Protocol):
    """A world in which calls act: its question begins an episode; no call changes a state in place."""

    question_form: ClassVar[re.Pattern[str]]  # finds the question in a prompt, whatever the dials

    def begin(self, question: str) -> Any:
        """Return the first state."""
        ...

    def act(self, state: Any, call: str) -> Turn:
        """Return what follows a call, which may be any text. It never raises."""
        ...

    def over(self, state: Any) -> bool:
        """Return whether the episode has ended, so that no call changes the state."""
        ...


class StatefulWorld(Acting, Protocol):
    """A world with a state that knows right answers and useful calls, from which `Played` has its methods."""

    def told(self, state: Any) -> str:
        """Return the answer that a policy should give after this state."""
        ...

    def useful(self, state: Any, call: str) -> bool:
        """Return whether a call brings the goal nearer, as the world works when luck does not meddle."""
        ...


def act(world: Acting, state: Any, call: str) -> Turn:
    """Return what follows a call, in an episode that may have ended."""
    return Turn(state, OVER, good=False) if world.over(state) else world.act(state, call)


def calls(completion: str) -> list[tuple[str, int]]:
    """Return the calls of a completion that are played, each with the offset just past it."""
    matches = list(CALLED.finditer(completion))[:MOST]
    return [(match[1], match.end()) for match in matches]


def play(world: Acting, question: str, acted: Sequence[str]) -> Iterator[tuple[Any, Turn]]:
    """Yield for each call the state before it and what follows it."""
    state = world.begin(question)
    for call in acted:
        turn = act(world, state, call)
        yield state, turn
        state = turn.state


def last_state(world: StatefulWorld, question: str, completion: str) -> Any:
    """Return the state after all calls of a completion."""
    state = world.begin(question)
    for _, turn in play(world, question, [call for call, _ in calls(completion)]):
        state = turn.state
    return state


def observe(world: Acting, prompt: str, said: Sequence[str]) -> Turn | None:
    """Return what follows the last call of `said`, all calls of a policy that was asked `prompt`.

    Return None if the prompt has no question of the world.
    """
    questions = world.question_form.findall(prompt)
    if not questions:
        return None
    if len(said) > MOST:
        return Turn(None, OVER, good=False)
    turns = [turn for _, turn in play(world, questions[-1], said)]
    return turns[-1]


class Played:
    """The methods of a world that follow from its episodes; a stateful world inherits them."""

    answer_suffices: ClassVar[bool] = False  # whether the right answer is right without calls that lead to it

    def verify(self: Any, problem: Problem, completion: str) -> bool:
        """Return whether the answer is right, and is what the calls have led to."""
        if answer(completion) != problem.answer:
            return False
        return self.told(last_state(self, problem.question, completion)) == problem.answer

    def steps(self: Any, problem: Problem, completion: str) -> list[bool]:
        """Return whether each call brings the goal nearer."""
        acted = [call for call, _ in calls(completion)]
        return [
            not self.over(state) and turn.good and self.useful(state, call)
            for call, (state, turn) in zip(acted, play(self, problem.question, acted), strict=True)
        ]

    def step_ends(self: Any, problem: Problem, completion: str) -> list[int]:
        return [end for _, end in calls(completion)]

    def document(self: Any, problem: Problem, kind: str, rng: random.Random, **dials: Any) -> str:
        return self.kinds[kind](self, problem, rng, **dials)


def document(world: StatefulWorld, problem: Problem, choose: Callable[[Any], str | None], most: int) -> str:
    """Return a completion whose calls `choose` takes from the state, until it returns None or all is over.

    It has at most `most` calls.
    """
    state, text = world.begin(problem.question), ""
    for _ in range(most):
        call = None if world.over(state) else choose(state)
        if call is None:
            break
        turn = world.act(state, call)
        text += f"{CALL[0]}{call}{CALL[1]}{RESULT[0]}{turn.observation}{RESULT[1]}"
        state = turn.state
    return tagged(text, world.told(state))


def malformed(state: Any) -> Turn:
    """Return what follows a call that the world does not know: nothing but an error."""
    return Turn(state, ERROR, good=False)
