"""Environments as a user writes them for TRL's `environment_factory`, and what can be wrong with one."""

import itertools
import random
import time
from dataclasses import dataclass
from typing import ClassVar

from encore.worlds.answers import TAGS
from encore.worlds.environment import CALL
from encore.worlds.protocol import Problem

HIDDEN = itertools.count()  # a state that no seed fixes


def call(number: object) -> str:
    """The text of a call of `guess`."""
    return f'{{"name": "guess", "arguments": {{"number": {number}}}}}'


def said(*numbers: object) -> str:
    """A completion that makes these guesses."""
    return "".join(f"{CALL[0]}{call(number)}{CALL[1]}" for number in numbers)


class Guess:
    """A number from 0 to `most` is to be guessed; the reward is higher the fewer the guesses."""

    def __init__(self, most: int = 9):
        self.most = most

    def reset(self, seed: int) -> str:
        self.secret = random.Random(seed).randint(0, self.most)
        self.done, self.rewards, self.state = False, [], {"guesses": []}
        return "I think of a number."

    def guess(self, number: int) -> str:
        """
        Guess the number.

        Args:
            number: the guess
        """
        if not 0 <= number <= self.most:
            raise ValueError("out of range")
        self.state["guesses"].append(number)
        self.done = number == self.secret
        self.rewards.append(float(self.done))
        return "right" if self.done else "more" if number < self.secret else "less"

    def get_reward(self) -> float:
        return 1 / len(self.rewards) if self.done else 0.0


class Async(Guess):
    async def guess(self, number: int) -> str:  # type: ignore[override]
        """
        Guess the number.

        Args:
            number: the guess
        """
        return super().guess(number)


class Hangs(Guess):
    def guess(self, number: int) -> str:
        """
        Guess the number.

        Args:
            number: the guess
        """
        time.sleep(60)
        return "late"


class HangsAtTheStart(Guess):
    def reset(self, seed: int) -> str:
        time.sleep(60)
        return "late"


class Raises(Guess):
    def guess(self, number: int) -> str:
        """
        Guess the number.

        Args:
            number: the guess
        """
        raise RuntimeError("the server is gone")


class Lies(Guess):
    def get_reward(self) -> float:
        return 3.0


class NotANumber(Guess):
    def get_reward(self) -> float:
        return float("nan")


class NoNumber(Guess):
    def get_reward(self) -> float:
        return None  # type: ignore[return-value]


class Forgets(Guess):
    """What it shows depends on what it has shown before, in whatever episode."""

    def guess(self, number: int) -> str:
        """
        Guess the number.

        Args:
            number: the guess
        """
        return f"{super().guess(number)} {next(HIDDEN)}"


class Moody(Guess):
    """What it pays depends on what it has paid before."""

    def get_reward(self) -> float:
        return 1 / (2 + next(HIDDEN))


class NoSeed(Guess):
    def reset(self) -> str:  # type: ignore[override]
        return super().reset(0)


class NoReward:
    def reset(self, seed: int) -> str:
        return ""


class NoDocstring(NoReward):
    reward = 0.0

    def guess(self, number):
        return ""


class ByIndex:
    """An environment with a reward as an attribute, blocks of content, and tasks by their index."""

    def reset(self, task_index: int = 0, **_: object) -> list[dict[str, str]]:
        self.reward, self.index = 0.0, task_index
        return [{"type": "text", "text": f"task {task_index}"}, {"type": "image", "url": "none"}]

    def submit(self, answer: str) -> dict[str, bool]:
        """
        Submit an answer.

        Args:
            answer: the answer
        """
        self.reward = float(answer == str(self.index))
        return {"accepted": True}


class Spec:
    """A specification as those of TRL: rows with the arguments of `reset`, and a factory."""

    @property
    def train_dataset(self) -> list[dict]:
        prompt = [{"role": "user", "content": "Guess: "}]
        return [{"prompt": prompt, "task_index": 10 * place} for place in range(3)]

    @property
    def environment_factory(self):
        return ByIndex


spec = Spec()


def factory(most: int = 4) -> Guess:
    """TRL takes any function that makes an environment."""
    return Guess(most)


def guesses(world: "Calls", problem: Problem, rng: random.Random) -> str:
    """A document to pretrain on: a guess or two, one of which may be no JSON."""
    texts = [call(rng.randint(0, 9)) for _ in range(rng.randint(1, 2))]
    if rng.random() < 0.2:
        texts[-1] = str(rng.randint(0, 9))
    turns = (f"{CALL[0]}{text}{CALL[1]}<tool_response>less</tool_response>" for text in texts)
    return "".join(turns)


@dataclass(frozen=True)
class Calls:
    """A world whose documents call as a policy in `Guess` does, for models that are made from nothing."""

    name: ClassVar[str] = "calls"
    vocabulary: ClassVar[tuple[str, ...]] = (
        *("I think of a number.", "\n", "(episode ", ")", "more", "less", "right", "error", "over"),
        *('{"name": "guess", "arguments": {"number": ', "}}", *"0123456789"),
        *(*CALL, "<tool_response>", "</tool_response>", *TAGS),
    )
    kinds: ClassVar[dict] = {"guesses": guesses}
    rewards: ClassVar[dict] = {}

    def problem(self, rng):
        return Problem(f"I think of a number.\n\n(episode {rng.randrange(100)})", "", 0)

    def verify(self, problem, completion):
        return False

    def steps(self, problem, completion):
        return []

    def step_ends(self, problem, completion):
        return []

    def document(self, problem, kind, rng, **dials):
        return self.kinds[kind](self, problem, rng, **dials)
