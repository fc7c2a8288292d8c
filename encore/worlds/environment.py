"""Environments of users and of other libraries, as worlds in which the calls of a policy act.

    task: {environment: "my_games:Wordle"}
    task: {environment: openenv, url: "http://localhost:8000"}
    task: {environment: verifiers, taskset: "primeintellect/wiki-search"}
    tool: {name: environment, calls: 8, longest: 256}
    rewards: {environment: 1.0}

A class of a user is what TRL's `environment_factory` takes: `reset`, methods that are tools, and `get_reward`
(encore/worlds/environment_class.py). The other keys of the task are the arguments of its constructor, or of
the library's client. Each problem is an episode. Its number goes to `reset`, and stands at the end of the
question, as in `(episode 4821)`. So observations follow from the question and the calls alone, as in every
world with a state (encore/worlds/episodes.py): a verifier plays the calls again if the episode is no longer
in memory, and a resumed run sees the same episodes. An environment that is not deterministic is refused when
an episode that is played again brings something else.
"""

import json
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, ClassVar

from encore.errors import UserError
from encore.worlds.environment_player import Episode, Limits, Player
from encore.worlds.environment_session import CALL, Arguments, Schema
from encore.worlds.episodes import MOST, Turn
from encore.worlds.protocol import Document, Problem

KEY = "environment"  # key of a task; name of the world, of its tool and of its reward
LIBRARIES = ("openenv", "verifiers")
MARK = re.compile(r"\(episode [0-9]{1,18}\)")  # the end of a question
# keys of a task that are no arguments of the environment
LIMITS = ("sessions", "seconds")
OURS = ("world", "code", KEY, "right", "episodes", "reward_range", *LIMITS)


@dataclass(frozen=True)
class Environment:
    """An environment by the name of its class or library; `arguments`: its constructor's arguments, as JSON.

    `right`: the reward from which an episode counts as right. `episodes`: the number of different episodes.
    """

    source: str
    arguments: str = "{}"
    right: float = 1.0
    episodes: int = 1_000_000
    limits: Limits = field(default_factory=Limits)

    name: ClassVar[str] = KEY
    vocabulary: ClassVar[tuple[str, ...]] = ()
    kinds: ClassVar[Mapping[str, Document]] = {}
    question_form: ClassVar[re.Pattern[str]] = MARK
    answer_suffices: ClassVar[bool] = False

    @cached_property
    def player(self) -> Player:
        """The player of the episodes, which remembers what it has played."""
        return Player(self.source, self.arguments, self.limits)

    @property
    def rewards(self) -> Mapping[str, Callable[[Problem, str], float]]:
        """The reward `environment`: the environment's own reward of an episode."""
        return {KEY: self.reward}

    def tools(self) -> list[Schema]:
        """Return the JSON schemas of the environment's tools, as chat templates take them."""
        return [*self.player.tools.values()]

    def problem(self, rng: random.Random) -> Problem:
        """Return an episode as a problem, whose question is the first observation with a number."""
        known = self.player.source.episodes
        number = rng.randrange(min(self.episodes, known or self.episodes))
        shown = self.player.begin(number).text.strip()
        return Problem(f"{shown}\n\n(episode {number})".strip(), "", 0, number=number)

    def begin(self, question: str) -> Episode:
        return Episode(_number(question))

    def act(self, state: Episode, call: str) -> Turn:
        """Return what follows a call. Raises UserError if the environment fails."""
        after = state.then(call)
        observed = self.player.after(after)
        return Turn(after, observed.text, observed.good, observed.reward, observed.state)

    def over(self, state: Episode) -> bool:
        return self.player.after(state).over

    def reward(self, problem: Problem, completion: str) -> float:
        """Return the environment's reward of the episode that a completion has played.

        Raises UserError if the environment fails, or breaks its word (`Player`).
        """
        states = [self.begin(problem.question), *self._states(problem, completion)]
        return self.player.reward(states[-1], completion)

    def verify(self, problem: Problem, completion: str) -> bool:
        """Return whether the reward of the episode is at least `right`."""
        return self.reward(problem, completion) >= self.right

    def steps(self, problem: Problem, completion: str) -> list[bool]:
        """Return whether each call has earned a reward of its own, by an environment that rewards calls."""
        turns = [self.player.after(state) for state in self._states(problem, completion)]
        return [turn.good and (turn.reward or 0.0) > 0 for turn in turns]

    def step_ends(self, problem: Problem, completion: str) -> list[int]:
        ends = [end for _, end in calls(completion)]
        return ends[: len(self._states(problem, completion))]

    def document(self, problem: Problem, kind: str, rng: random.Random, **dials: Any) -> str:
        """Raise UserError: an environment writes no documents."""
        raise UserError(f"task: {self.source} writes no documents to learn from; take a world of ours")

    def _states(self, problem: Problem, completion: str) -> list[Episode]:
        """Return the states after each call of a completion, up to the end of the episode."""
        state, states = self.begin(problem.question), []
        for call, _ in calls(completion):
            if self.over(state):
                break
            state = state.then(call)
            states.append(state)
        return states


def calls(completion: str) -> list[tuple[str, int]]:
    """Return the calls of a completion that are played, each with the offset just past it, in linear time."""
    played: list[tuple[str, int]] = []
    start = 0
    while len(played) < MOST and (end := completion.find(CALL[1], start)) >= 0:
        opened = completion.rfind(CALL[0], start, end)
        if opened >= 0:
            played.append((completion[opened + len(CALL[0]) : end], end + len(CALL[1])))
        start = end + len(CALL[1])
    return played


def _number(question: str) -> int:
    """Return the number of the episode that a question names, 0 if it names none."""
    marks = MARK.findall(question)
    return int(marks[-1].removeprefix("(episode ").rstrip(")")) if marks else 0


@cache
def _made(source: str, arguments: str, right: float, episodes: int, limits: Limits) -> Environment:
    # there is one world for each task, because its player remembers what was played
    return Environment(source, arguments, right, episodes, limits)


def make(task: Arguments) -> Environment:
    """Return the world that the keys of a recipe's `task` describe; nothing of it runs yet."""
    arguments = {key: value for key, value in task.items() if key not in OURS}
    limits = {key: task[key] for key in LIMITS if key in task}
    if "reward_range" in task:
        limits |= dict(zip(("lowest", "highest"), task["reward_range"], strict=True))
    return _made(
        str(task[KEY]),
        json.dumps(arguments, sort_keys=True),
        task.get("right", Environment.right),
        task.get("episodes", Environment.episodes),
        Limits(**limits),
    )
