"""World `faces`: sums in which J, Q and K count as the question's rule says.

The question `ten: 3+J+5=` has the answer `18`, and `rank: 3+J+5=` has the answer `19`. By the rule `ten` each
face counts 10; by the rule `rank` J, Q and K count 11, 12 and 13. Every question has a face, so the two rules
never give the same answer. The difficulty is the number of terms. The world stands in for the card game of
arXiv 2501.17161, where a model is trained by one rule and tested by the other. The kinds of document:

| kind      | example                                                | what it plants                    |
|-----------|--------------------------------------------------------|-----------------------------------|
| direct    | `<answer>18</answer>`                                  | guesses, a share `right` is right |
| chain     | `<think>3+J=13,13+5=18</think><answer>18</answer>`     | reasoning from left to right      |
| truncated | `<think>3+J=13</think><answer>13</answer>`             | stopping early with a partial sum |
| untagged  | `3+J=13,13+5=18`                                       | reasoning without the format      |

The kinds that reason have two dials: `error` is the chance that a step slips and is carried forward, and
`misread` is the chance that a document counts its faces by the other rule.
"""

import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from encore.worlds.answers import TAGS, answer
from encore.worlds.documents import tagged
from encore.worlds.protocol import Document, Problem, require
from encore.worlds.steps import ends, matches, texts
from encore.worlds.sums import slip

RULES: Mapping[str, Mapping[str, int]] = {
    "ten": {"J": 10, "Q": 10, "K": 10},
    "rank": {"J": 11, "Q": 12, "K": 13},
}
OTHER = {"ten": "rank", "rank": "ten"}
MARKS = {rule: f"{rule}: " for rule in RULES}  # the beginning of a question, which names its rule
FACES = "JQK"
STEP = re.compile(r"([JQK]|[0-9]{1,4})\+([JQK]|[0-9]{1,4})=([0-9]{1,5})")


def _rule_of(question: str) -> str:
    """Return the rule that a question names."""
    return question.partition(":")[0]


def _terms_of(question: str) -> list[str]:
    """Return the terms of `ten: 3+J+5=`: ["3", "J", "5"]."""
    return question.partition(": ")[2].rstrip("=").split("+")


def _value(term: str, rule: str) -> int:
    """Return the value of a term, such as `3` or `J`, by a rule."""
    return RULES[rule].get(term) or int(term)


def _total(question: str, rule: str) -> int:
    """Return the sum of a question's terms by a rule, which may differ from the question's rule."""
    return sum(_value(term, rule) for term in _terms_of(question))


def _work(problem: Problem, error: float, misread: float, rng: random.Random) -> list[str]:
    """Return the steps from left to right, each with a slip at chance `error`.

    With chance `misread` all faces count by the other rule.
    """
    rule = _rule_of(problem.question)
    if rng.random() < misread:
        rule = OTHER[rule]
    so_far, *terms = _terms_of(problem.question)
    steps = []
    for term in terms:
        result = _value(so_far, rule) + _value(term, rule)
        if rng.random() < error:
            result = slip(result, rng)
        steps.append(f"{so_far}+{term}={result}")
        so_far = str(result)
    return steps


def _closed(steps: list[str]) -> str:
    """Return the steps as a scratchpad, and the last result as the answer."""
    return tagged(",".join(steps), steps[-1].partition("=")[2])


def direct(world: "Faces", problem: Problem, rng: random.Random, *, right: float = 0.3) -> str:
    if rng.random() < right:
        return f"<answer>{problem.answer}</answer>"
    rule = _rule_of(problem.question)
    guess = sum(_value(term, rule) for term in world.draw(problem.difficulty, rng))
    return f"<answer>{guess if guess != int(problem.answer) else slip(guess, rng)}</answer>"


def chain(
    world: "Faces", problem: Problem, rng: random.Random, *, error: float = 0.0, misread: float = 0.0
) -> str:
    return _closed(_work(problem, error, misread, rng))


def truncated(
    world: "Faces", problem: Problem, rng: random.Random, *, error: float = 0.0, misread: float = 0.0
) -> str:
    steps = _work(problem, error, misread, rng)
    return _closed(steps[: rng.randint(1, len(steps) - 1)])


def untagged(
    world: "Faces", problem: Problem, rng: random.Random, *, error: float = 0.0, misread: float = 0.0
) -> str:
    return ",".join(_work(problem, error, misread, rng))


def other_rule(problem: Problem, completion: str) -> float:
    """Return 1 if the answer is right by the rule that the question does not name, else 0."""
    return float(answer(completion) == str(_total(problem.question, OTHER[_rule_of(problem.question)])))


@dataclass(frozen=True)
class Faces:
    """World `faces`: sums in which J, Q and K count by the rule that the question names.

    Dials: the `rule` of the questions, "ten", "rank" or "either"; `terms` [fewest, most] of a question; the
    share of `faces` among the terms. Every question has one face at least.
    """

    rule: str = "either"
    terms: tuple[int, int] = (3, 6)
    faces: float = 0.4

    name: ClassVar[str] = "faces"
    vocabulary: ClassVar[tuple[str, ...]] = (*"0123456789+=,", *FACES, *MARKS.values(), *TAGS)
    rewards: ClassVar[Mapping[str, Callable[[Problem, str], float]]] = {"other_rule": other_rule}
    kinds: ClassVar[Mapping[str, Document]] = {
        kind.__name__: kind for kind in (direct, chain, truncated, untagged)
    }

    def __post_init__(self) -> None:
        expected = ", ".join(f'"{rule}"' for rule in (*RULES, "either"))
        require(self.rule in (*RULES, "either"), f'rule: expected one of {expected}; got "{self.rule}"')
        fewest, most = self.terms
        require(3 <= fewest <= most <= 64, f"terms: expected 3 <= fewest <= most <= 64, got {[*self.terms]}")
        require(0 < self.faces <= 1, f"faces: expected a share above 0 and up to 1, got {self.faces}")

    def draw(self, count: int, rng: random.Random) -> list[str]:
        """Draw `count` terms: digits from 1 to 9 and faces, one face at least."""
        terms = [
            rng.choice(FACES) if rng.random() < self.faces else str(rng.randint(1, 9)) for _ in range(count)
        ]
        if not any(term in FACES for term in terms):
            terms[rng.randrange(count)] = rng.choice(FACES)
        return terms

    def problem(self, rng: random.Random) -> Problem:
        """Draw a problem. From the same `rng` both rules get the same terms, for comparisons in pairs."""
        terms = self.draw(rng.randint(*self.terms), rng)
        drawn = rng.choice([*RULES])
        rule = drawn if self.rule == "either" else self.rule
        question = f"{MARKS[rule]}{'+'.join(terms)}="
        return Problem(question, str(_total(question, rule)), len(terms))

    def verify(self, problem: Problem, completion: str) -> bool:
        """Return whether the answer is right and in the usual form: not `018`, nor in another script."""
        return answer(completion) == problem.answer

    def steps(self, problem: Problem, completion: str) -> list[bool]:
        """Return whether each step is right: the result before it plus the next term, by the question's rule.

        After a wrong result, the next step continues from it. Text that is no step is wrong, and leaves its
        term to the next step.
        """
        rule = _rule_of(problem.question)
        so_far, *terms = _terms_of(problem.question)
        verdicts = []
        for match in matches(STEP, texts(completion, ",")):
            if match is None or not terms:
                verdicts.append(False)
                continue
            first, second, result = match.groups()
            right = _value(first, rule) + _value(second, rule) == int(result)
            verdicts.append(first == so_far and second == terms.pop(0) and right)
            so_far = result
        return verdicts

    def step_ends(self, problem: Problem, completion: str) -> list[int]:
        """Return the offset just past each step of `steps`."""
        return ends(completion, ",")

    def document(self, problem: Problem, kind: str, rng: random.Random, **dials: Any) -> str:
        """Write a document of a kind, with its dials."""
        return self.kinds[kind](self, problem, rng, **dials)
