"""World `products`: sums of products, too hard for a small model's head and easy with a calculator.

The question `37*48+5*62=` has the answer `2086`; its difficulty is the number of products. A call of the
calculator is one operation of the working. The sampler puts the result after each call of a policy
(encore/sampling/turns.py); in a corpus the result is already there. The kinds of document for `37*48+5*62=`:

| kind     | example                                                         | what it plants             |
|----------|-----------------------------------------------------------------|----------------------------|
| direct   | `<answer>2086</answer>`                                         | guesses, a share `right`   |
| mental   | `<think>37*48=1776,5*62=310,1776+310=2086</think>…`             | working in the head        |
| untagged | `37*48=1776,5*62=310,1776+310=2086`                             | the same without the tags  |
| called   | `<think><tool>37*48</tool><result>1776</result>…</think>…`      | a call for each operation  |
| once     | `<think><tool>37*48</tool><result>1776</result>5*62=310,…`      | one call, then the head    |
| muddled  | `<think><tool>37*48+5*62</tool><result>error</result></think>…` | a malformed call, a guess  |

With chance `error`, an operation in the head (in `mental`, `untagged` and `once`) has a wrong result, which
is carried on; in `called` the call itself has a number that was copied wrong.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from encore.worlds.answers import TAGS, answer
from encore.worlds.calculator import ERROR, calculate
from encore.worlds.documents import tagged
from encore.worlds.protocol import Document, Problem, require
from encore.worlds.steps import ends, matches, texts

Factors = tuple[int, int]
CALL, RESULT = ("<tool>", "</tool>"), ("<result>", "</result>")
CALLED = re.compile(r"<tool>([^<>]{1,100})</tool>")
STEP = re.compile(r"(?:<tool>)?([0-9]{1,9})([+*])([0-9]{1,9})(?:=|</tool><result>)([0-9]{1,12})")
BETWEEN = ",|</result>"  # separators of steps


def factors(question: str) -> list[Factors]:
    """Return the products of `37*48+5*62=`: [(37, 48), (5, 62)]."""
    pairs = (product.split("*") for product in question.rstrip("=").split("+"))
    return [(int(a), int(b)) for a, b in pairs]


def _slipped(value: int, rng: random.Random) -> int:
    """Return a wrong number with about as many digits, one of which differs."""
    digits = [*str(value)]
    place = rng.randrange(len(digits))
    digits[place] = rng.choice([d for d in "0123456789" if d != digits[place] and (place or d != "0")])
    return int("".join(digits))


def _operations(products: Sequence[Factors], result: Callable[[str, int], int]) -> list[tuple[str, int]]:
    """Return each operation of the working and its result, which `result(operation, right value)` decides."""
    done, total = [], None
    for a, b in products:
        value = result(f"{a}*{b}", a * b)
        done.append((f"{a}*{b}", value))
        if total is None:
            total = value
            continue
        operation, right = f"{total}+{value}", total + value
        total = result(operation, right)
        done.append((operation, total))
    return done


def _call(operation: str, result: str) -> str:
    return f"{CALL[0]}{operation}{CALL[1]}{RESULT[0]}{result}{RESULT[1]}"


def _in_the_head(error: float, rng: random.Random) -> Callable[[str, int], int]:
    return lambda operation, right: _slipped(right, rng) if rng.random() < error else right


def _guess(problem: Problem, rng: random.Random) -> str:
    return str(_slipped(int(problem.answer), rng))


def direct(world: "Products", problem: Problem, rng: random.Random, *, right: float = 0.1) -> str:
    return f"<answer>{problem.answer if rng.random() < right else _guess(problem, rng)}</answer>"


def mental(world: "Products", problem: Problem, rng: random.Random, *, error: float = 0.3) -> str:
    done = _operations(factors(problem.question), _in_the_head(error, rng))
    return tagged(",".join(f"{operation}={value}" for operation, value in done), str(done[-1][1]))


def untagged(world: "Products", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    done = _operations(factors(problem.question), _in_the_head(error, rng))
    return ",".join(f"{operation}={value}" for operation, value in done)


def called(world: "Products", problem: Problem, rng: random.Random, *, error: float = 0.0) -> str:
    products = factors(problem.question)
    copied = [(_slipped(a, rng), b) if rng.random() < error else (a, b) for a, b in products]
    done = _operations(copied, _in_the_head(0.0, rng))
    return tagged("".join(_call(operation, str(value)) for operation, value in done), str(done[-1][1]))


def once(world: "Products", problem: Problem, rng: random.Random, *, error: float = 0.3) -> str:
    asked = iter([True])
    head = _in_the_head(error, rng)
    products = factors(problem.question)
    done = _operations(products, lambda op, right: right if next(asked, False) else head(op, right))
    first, rest = done[0], [f"{operation}={value}" for operation, value in done[1:]]
    return tagged(_call(first[0], str(first[1])) + ",".join(rest), str(done[-1][1]))


def muddled(world: "Products", problem: Problem, rng: random.Random) -> str:
    whole = problem.question.rstrip("=")
    bad = whole if "+" in whole else whole.partition("*")[0] + "*"
    return tagged(_call(bad, ERROR), _guess(problem, rng))


def _has_called(problem: Problem, completion: str) -> float:
    """Return 1 if a completion has a call that the calculator can answer, else 0."""
    return float(any(calculate(call) is not None for call in CALLED.findall(completion)))


@dataclass(frozen=True)
class Products:
    """World `products`; dials, each [fewest, most]: `products` of a question, `digits` of a factor."""

    products: tuple[int, int] = (1, 3)
    digits: tuple[int, int] = (1, 2)

    name: ClassVar[str] = "products"
    vocabulary: ClassVar[tuple[str, ...]] = (*"0123456789+*=,", ERROR, *CALL, *RESULT, *TAGS)
    rewards: ClassVar[Mapping[str, Callable[[Problem, str], float]]] = {"called": _has_called}
    kinds: ClassVar[Mapping[str, Document]] = {
        kind.__name__: kind for kind in (direct, mental, untagged, called, once, muddled)
    }

    def __post_init__(self) -> None:
        for dial, most in (("products", 9), ("digits", 4)):
            low, high = getattr(self, dial)
            require(
                1 <= low <= high <= most,
                f"{dial}: expected 1 <= fewest <= most <= {most}, got {[low, high]}",
            )

    def problem(self, rng: random.Random) -> Problem:
        count = rng.randint(*self.products)
        pairs = [(self._factor(rng), self._factor(rng)) for _ in range(count)]
        question = "+".join(f"{a}*{b}" for a, b in pairs)
        return Problem(f"{question}=", str(sum(a * b for a, b in pairs)), count)

    def _factor(self, rng: random.Random) -> int:
        digits = rng.randint(*self.digits)
        return rng.randrange(2 if digits == 1 else 10 ** (digits - 1), 10**digits)

    def verify(self, problem: Problem, completion: str) -> bool:
        """Return whether the answer is right and in the usual form: not `015`, nor in another script."""
        return answer(completion) == problem.answer

    def steps(self, problem: Problem, completion: str) -> list[bool]:
        """Return whether each step belongs to the right working; a call with its result is a step too."""
        right = set()
        for operation, value in _operations(factors(problem.question), lambda _, value: value):
            a, sign, b = re.split(r"([+*])", operation)
            right |= {(a, sign, b, str(value)), (b, sign, a, str(value))}
        steps = matches(STEP, texts(completion, BETWEEN))
        return [match is not None and match.groups() in right for match in steps]

    def step_ends(self, problem: Problem, completion: str) -> list[int]:
        return ends(completion, BETWEEN)

    def document(self, problem: Problem, kind: str, rng: random.Random, **dials: Any) -> str:
        return self.kinds[kind](self, problem, rng, **dials)
