"""The bandit anew, in numpy and in loops: strings by recursion, and gradients of single draws."""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

END = "."
Tables = Mapping[str, np.ndarray]  # prefix -> logits of the letters and the end
Group = tuple[str, ...]


@dataclass(frozen=True)
class Problem:
    """What the loops need of a bandit."""

    letters: str
    longest: int
    rewards: Mapping[str, float]
    reference: Tables
    beta: float

    def strings(self, prefix: str = "") -> Iterator[str]:
        """Yield every string that begins so."""
        if len(prefix) == self.longest:
            yield prefix
            return
        yield prefix + END
        for letter in self.letters:
            yield from self.strings(prefix + letter)

    def column(self, token: str) -> int:
        return (self.letters + END).index(token)


def tables(prefixes: Sequence[str], logits: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip(prefixes, logits, strict=True))


def steps(text: str) -> Iterator[tuple[str, str]]:
    """Yield each token after its prefix."""
    for t, token in enumerate(text):
        yield text[:t], token


def softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def log_probs(problem: Problem, policy: Tables, text: str) -> list[float]:
    return [math.log(softmax(policy[prefix])[problem.column(token)]) for prefix, token in steps(text)]


def chance(problem: Problem, policy: Tables, text: str) -> float:
    return math.exp(sum(log_probs(problem, policy, text)))


def divergence(problem: Problem, policy: Tables) -> float:
    return sum(
        chance(problem, policy, text)
        * (sum(log_probs(problem, policy, text)) - sum(log_probs(problem, problem.reference, text)))
        for text in problem.strings()
    )


def objective(problem: Problem, policy: Tables) -> float:
    reward = sum(chance(problem, policy, text) * problem.rewards[text] for text in problem.strings())
    return reward - problem.beta * divergence(problem, policy)


def slope(function: Callable[[Tables], float], policy: Tables, width: float = 1e-5) -> np.ndarray:
    """The gradient of a function of a policy by central differences, prefix after prefix."""
    found = []
    for prefix, logits in policy.items():
        for column in range(len(logits)):
            moved = np.eye(len(logits))[column] * width
            up, down = ({**policy, prefix: logits + sign * moved} for sign in (1, -1))
            found.append((function(up) - function(down)) / (2 * width))
    return np.array(found)


def score(problem: Problem, policy: Tables, text: str, weights: Sequence[float]) -> np.ndarray:
    """The sum over the tokens of a string of weight times the gradient of the token's log-probability."""
    parts = {prefix: np.zeros(len(logits)) for prefix, logits in policy.items()}
    for (prefix, token), weight in zip(steps(text), weights, strict=True):
        parts[prefix] += weight * (
            np.eye(len(policy[prefix]))[problem.column(token)] - softmax(policy[prefix])
        )
    return np.concatenate(list(parts.values()))


def moments(
    problem: Problem, policy: Tables, size: int, draw: Callable[[Group], np.ndarray]
) -> tuple[np.ndarray, float]:
    """The mean of an estimate over all groups of strings, and its variance times the size of a group."""
    mean: np.ndarray = np.zeros(sum(map(len, policy.values())))
    square = 0.0
    for group in itertools.product(list(problem.strings()), repeat=size):
        weight = math.prod(chance(problem, policy, text) for text in group)
        made = draw(group)
        mean, square = mean + weight * made, square + weight * made @ made
    return mean, size * (square - mean @ mean)
