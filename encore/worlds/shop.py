"""World `shop`: several units of a thing are bought as cheaply as can be, from sellers who tell on asking.

The question `3xyz 482=` asks for three units, names the sellers, and gives the game, a number that decides
their prices and stocks. There are two kinds of call. `?x` asks seller x; the observation `4,2` is the price
of a unit and the number of units in stock. `x2` buys two units from seller x; the observation is `ok`, or
`no` if the stock is too small or more is bought than is needed, and then nothing is bought. When all units
are bought, the episode is over. The answer is the sum that was paid, which is right if no plan is cheaper.
The difficulty is the number of units. The kinds of document:

| kind     | example                                                         | what it plants              |
|----------|-----------------------------------------------------------------|-----------------------------|
| direct   | `<answer>12</answer>`                                           | a guess, nothing is bought  |
| asking   | `<think><tool>?x</tool><result>4,2</result>…<answer>12</answer>`| all are asked, the cheapest |
|          |                                                                 | sells first                 |
| careless | `<think><tool>?y</tool><result>5,1</result>…<answer>15</answer>`| whoever is asked sells      |
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

from encore.worlds.answers import TAGS
from encore.worlds.calculator import ERROR
from encore.worlds.episodes import OVER, Played, Turn, document, last_state, malformed
from encore.worlds.products import CALL, RESULT
from encore.worlds.protocol import Document, Problem, require

SELLERS = "vwxyz"
GAMES = 10_000
HIGHEST_PRICE, LARGEST_STOCK = 9, 3
ASK, BUY = re.compile(r"\?([v-z])"), re.compile(r"([v-z])([1-9])")
MOST_CALLS = 12  # of a document

Stock = tuple[int, int]  # the price of a unit, and the number of units


@dataclass(frozen=True)
class Bought:
    """The state: the question, and what was bought: seller and units of each purchase."""

    question: str
    purchases: tuple[tuple[str, int], ...] = ()

    @property
    def missing(self) -> int:
        """The number of units that are still to be bought."""
        return _needed(self.question) - sum(units for _, units in self.purchases)

    @property
    def paid(self) -> int:
        return sum(stocks(self.question)[seller][0] * units for seller, units in self.purchases)

    def left(self, seller: str) -> int:
        """Return the number of units that a seller still has."""
        sold = sum(units for name, units in self.purchases if name == seller)
        return stocks(self.question)[seller][1] - sold


def _needed(question: str) -> int:
    return int(question[0])


@lru_cache(maxsize=4096)
def stocks(question: str) -> Mapping[str, Stock]:
    """Return the price and the stock of each seller in the game of a question; together they have enough."""
    luck = random.Random(f"stocks {question}")
    sellers = question[1:].partition(" ")[0]
    prices = luck.sample(range(1, HIGHEST_PRICE + 1), len(sellers))
    units = [luck.randint(0, LARGEST_STOCK) for _ in sellers]
    while sum(units) < _needed(question):
        units[luck.randrange(len(units))] += 1
    return dict(zip(sellers, zip(prices, units, strict=True), strict=True))


def _cheapest(question: str) -> int:
    """Return the least sum for which all units can be bought."""
    needed, total = _needed(question), 0
    for price, units in sorted(stocks(question).values()):
        total += price * min(units, needed)
        needed -= min(units, needed)
    return total


def direct(world: "Shop", problem: Problem, rng: random.Random) -> str:
    return f"<answer>{rng.randint(1, 2 * int(problem.answer))}</answer>"


def asking(world: "Shop", problem: Problem, rng: random.Random) -> str:
    sellers = [*stocks(problem.question)]
    order = sorted(sellers, key=lambda seller: stocks(problem.question)[seller][0])
    return document(world, problem, _plan(problem, [f"?{seller}" for seller in sellers], order), MOST_CALLS)


def careless(world: "Shop", problem: Problem, rng: random.Random) -> str:
    order = rng.sample([*stocks(problem.question)], len(stocks(problem.question)))
    return document(world, problem, _plan(problem, [f"?{order[0]}"], order), MOST_CALLS)


def _plan(problem: Problem, asked: Sequence[str], order: Sequence[str]) -> Callable[[Bought], str | None]:
    """Return a choice of calls that asks, and then buys from the sellers in an order."""
    questions = iter(asked)

    def choose(state: Bought) -> str | None:
        if question := next(questions, None):
            return question
        seller = next((name for name in order if state.left(name)), None)
        return seller and f"{seller}{min(state.left(seller), state.missing)}"

    return choose


def _bought(problem: Problem, completion: str) -> float:
    """Return the share of the units that a completion has bought, at whatever price."""
    return 1 - last_state(Shop(), problem.question, completion).missing / _needed(problem.question)


@dataclass(frozen=True)
class Shop(Played):
    """World `shop`; dials: number of `sellers`; `units` to buy, [fewest, most]."""

    sellers: int = 3
    units: tuple[int, int] = (1, 4)

    name: ClassVar[str] = "shop"
    question_form: ClassVar[re.Pattern[str]] = re.compile(r"[1-9][v-z]{2,5} [0-9]{1,4}=")
    vocabulary: ClassVar[tuple[str, ...]] = (
        *(*SELLERS, *"0123456789 =?,", "ok", "no"),
        *(ERROR, OVER, *CALL, *RESULT, *TAGS),
    )
    rewards: ClassVar[Mapping[str, Callable[[Problem, str], float]]] = {"bought": _bought}
    kinds: ClassVar[Mapping[str, Document]] = {kind.__name__: kind for kind in (direct, asking, careless)}

    def __post_init__(self) -> None:
        fewest, most = self.units
        require(2 <= self.sellers <= 5, f"sellers: expected from 2 to 5, got {self.sellers}")
        require(1 <= fewest <= most <= 9, f"units: expected 1 <= fewest <= most <= 9, got {[fewest, most]}")

    def problem(self, rng: random.Random) -> Problem:
        names = SELLERS[len(SELLERS) - self.sellers :]
        units = rng.randint(*self.units)
        question = f"{units}{names} {rng.randrange(GAMES)}="
        return Problem(question, str(_cheapest(question)), units)

    def begin(self, question: str) -> Bought:
        return Bought(question)

    def act(self, state: Bought, call: str) -> Turn:
        asked, bought = ASK.fullmatch(call), BUY.fullmatch(call)
        seller = asked[1] if asked else bought[1] if bought else ""
        if seller not in stocks(state.question):
            return malformed(state)
        if bought is None:
            return Turn(state, f"{stocks(state.question)[seller][0]},{state.left(seller)}")
        units = int(bought[2])
        if units > min(state.left(seller), state.missing):
            return Turn(state, "no")
        return Turn(replace(state, purchases=(*state.purchases, (seller, units))), "ok")

    def over(self, state: Bought) -> bool:
        return state.missing == 0

    def told(self, state: Bought) -> str:
        """Return the sum that was paid for all units; `no` if some are missing."""
        return str(state.paid) if self.over(state) else "no"

    def useful(self, state: Bought, call: str) -> bool:
        """Return whether a call asks, or buys from the cheapest of the sellers that have units left."""
        bought = BUY.fullmatch(call)
        if bought is None:
            return True
        prices = {name: price for name, (price, _) in stocks(state.question).items() if state.left(name)}
        return bought[1] in prices and prices[bought[1]] == min(prices.values())
