"""Worlds: seeded tasks with exact verifiers, which stand in for data sets offline.

    world = make({"world": "chain", "terms": [3, 8]})
    problems = sample(world, 256, seed=0, split="test")
    documents = corpus(world, {"direct": 0.5, "chain": {"weight": 0.5, "error": 0.02}}, 80_000, seed=0,
                       template="<user>{question}<assistant>")

The split is a property of the question: by its hash, one question in eight is a test question in every run
and every world, so nothing drawn from "train" can leak into "test".
"""

import random
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from itertools import cycle
from typing import Any

from encore import own_code
from encore.errors import UserError, nearest
from encore.worlds import faces
from encore.worlds.bandit_arms import BanditArms
from encore.worlds.bilingual import Bilingual
from encore.worlds.chain import Chain
from encore.worlds.countdown import Countdown
from encore.worlds.documents import Mixture, mix
from encore.worlds.environment import KEY as ENVIRONMENT
from encore.worlds.environment import make as make_environment
from encore.worlds.episodes import Acting, StatefulWorld
from encore.worlds.faces import Faces
from encore.worlds.feedback import feedback_on_attempts
from encore.worlds.frozen_lake import FrozenLake
from encore.worlds.functions import Functions
from encore.worlds.gym import LIBRARY
from encore.worlds.gym import make as make_gym
from encore.worlds.modular import Modular
from encore.worlds.preferences import Preferences
from encore.worlds.products import Products
from encore.worlds.protocol import Problem, TellingWorld, World
from encore.worlds.readability import MARKS
from encore.worlds.refusals import Refusals
from encore.worlds.shop import Shop
from encore.worlds.sokoban import Sokoban
from encore.worlds.sort import Sort
from encore.worlds.text import FEEDBACK, RESPONSE, prompt, text_hash, tokenizer

__all__ = [
    "STATEFUL",
    "WORLDS",
    "Problem",
    "World",
    "check_acts",
    "corpus",
    "make",
    "mix",
    "prompt",
    "sample",
    "split_of",
    "tokenizer",
]

# worlds with a state, whose name is a tool too: encore/worlds/episodes.py
STATEFUL: dict[str, Any] = {world.name: world for world in (BanditArms, FrozenLake, Shop, Sokoban)}
WORLDS: dict[str, Any] = {
    "bilingual": Bilingual,
    "chain": Chain,
    "countdown": Countdown,
    "faces": Faces,
    "functions": Functions,
    "modular": Modular,
    "preferences": Preferences,
    "products": Products,
    "refusals": Refusals,
    "sort": Sort,
    **STATEFUL,
}
NO_DIALS = ("world", "code")  # keys of a task that are not dials; code is the digest of a user's world
PROBLEMS = 4096  # distinct training problems of a world, unless the recipe sets their number
TEST_SHARE = 8  # one question in this many is a test question


def make(task: Mapping[str, Any]) -> World:
    """Return the world that a recipe's `task: {world: name, **dials}` describes.

    `name` is a key of WORLDS, or `my_module:Class` for a user's world. A task of reasoning-gym has the key
    `reasoning_gym` instead of `world`, and episodes of others have the key `environment`. Raises UserError
    for an unknown name or a bad dial.
    """
    for key, maker in ((LIBRARY, make_gym), (ENVIRONMENT, make_environment)):
        if key in task:
            world: Any = maker(task)
            return world
    name = task.get("world")
    made = _own(name) if own_code.is_own(name) else WORLDS.get(str(name))
    if made is None:
        raise UserError(f'world: no world "{name}"{nearest(name, [*WORLDS])}')
    dials = {field.name: field for field in fields(made)}
    settings = {dial: value for dial, value in task.items() if dial not in NO_DIALS}
    for dial, value in settings.items():
        if dial not in dials:
            raise UserError(f'{dial}: world "{name}" has no dial "{dial}"{nearest(dial, [*dials])}')
        default = dials[dial].default
        if not _like(value, default):
            raise UserError(f"{dial}: expected {_describe(default)}, got {value!r}")
    return made(**{k: tuple(v) if isinstance(v, list) else v for k, v in settings.items()})


def _own(name: Any) -> Any:
    """Return the class of a user's world. Raises UserError unless it has all attributes of protocol.World."""
    world = own_code.load(name)
    if not is_dataclass(world):
        raise UserError(f"world: {name}: expected a dataclass, whose fields are the dials")
    if lacking := _lacking(world, World):
        raise UserError(f"world: {name} lacks {', '.join(lacking)}; see encore/worlds/protocol.py")
    return world


def check_acts(world: Any, name: str) -> None:
    """Raise UserError unless calls can act in `world`, a user's class of this name."""
    if lacking := [*_lacking(world, Acting), *_lacking(world, StatefulWorld)]:
        raise UserError(f"tool.name: {name} lacks {', '.join(lacking)}; see encore/worlds/episodes.py")


def _lacking(world: Any, protocol: type) -> list[str]:
    """Return the attributes and methods of a protocol that a class does not have."""
    methods = [method for method in vars(protocol) if not method.startswith("_")]
    return [part for part in (*protocol.__annotations__, *methods) if not hasattr(world, part)]


def split_of(question: str) -> str:
    """Return the split of a question, by its hash: "test" for one question in eight, else "train".

    The hash leaves out the language or the rule that a question names, as in `English: 3+5=` or `ten: 3+J=`,
    so that a sum is in the same split in both languages and by both rules.
    """
    for mark in (*MARKS.values(), *faces.MARKS.values()):
        question = question.removeprefix(mark)
    return "test" if text_hash(question) % TEST_SHARE == 0 else "train"


def sample(world: World, n: int, seed: int, split: str) -> list[Problem]:
    """Return `n` problems of a split with distinct questions: the first n that the seed draws.

    Raises UserError if many draws bring no new question, so that the world must be nearly exhausted.
    """
    if split not in ("train", "test"):
        raise UserError(f'split: expected "train" or "test", got {split!r}')
    problems: dict[str, Problem] = {}
    draws, idle = _draws(world, seed, split), 0
    while len(problems) < n:
        problem = next(draws)
        idle = idle + 1 if problem.question in problems else 0
        problems.setdefault(problem.question, problem)
        if idle > 1000 + 20 * len(problems):
            raise UserError(
                f'task: {n} distinct {split} questions asked of world "{world.name}", which has '
                f"{len(problems)} with these dials; ask for fewer or widen its dials"
            )
    return [*problems.values()]


def corpus(
    world: World,
    mixture: Mixture,
    n: int,
    seed: int,
    template: str,
    leaked: int | None = None,
    attempts: Mixture | None = None,
) -> list[tuple[str, str]]:
    """Return `n` documents, each (prompt, completion) without an end token, on questions of the train split.

    Questions may occur several times. With `leaked` the questions are instead the first `leaked` problems of
    the test split that an evaluation with this seed asks, each equally often. If a problem prescribes the
    beginning of the completion, the prompt ends with it. A `{response}` in the template stands for the whole
    completion, and a `{feedback}` for what a TellingWorld says of a wrong attempt at the problem, a document
    of the mixture `attempts`. Raises UserError for a kind of document that begins otherwise.
    """
    kinds, weights, dials = mix(world, mixture)
    draws = cycle(sample(world, leaked, seed, "test")) if leaked else _draws(world, seed, "train")
    rng = random.Random(f"corpus {world.name} {seed}")
    documents, asked = [], []
    for i in rng.choices(range(len(kinds)), weights=weights, k=n):
        problem = next(draws)
        whole = world.document(problem, kinds[i], rng, **dials[i])
        if not whole.startswith(problem.begun):
            raise UserError(
                f"mixture.{kinds[i]}: its documents cannot continue a beginning such as {problem.begun!r}"
            )
        shown = prompt(template, problem.question).replace(RESPONSE, whole)
        documents.append((shown + problem.begun, whole[len(problem.begun) :]))
        asked.append(problem)
    if attempts is None:
        return documents
    assert isinstance(world, TellingWorld)
    said = feedback_on_attempts(world, attempts, asked, random.Random(f"attempts {world.name} {seed}"))
    return [
        (shown.replace(FEEDBACK, words), rest) for (shown, rest), words in zip(documents, said, strict=True)
    ]


def _draws(world: World, seed: int, split: str) -> Iterator[Problem]:
    """Yield the split's problems without end. Raises UserError if there seem to be none."""
    rng = random.Random(f"{world.name} {split} {seed}")
    missed = 0
    # number of draws in a row without a new question; by chance this has probability 1e-116 at most
    while missed < 2000:
        problem = world.problem(rng)
        if split_of(problem.question) == split:
            missed = 0
            yield problem
        else:
            missed += 1
    raise UserError(f'task: world "{world.name}" has no {split} question with these dials; widen its dials')


def _like(value: Any, default: Any) -> bool:
    """Return whether a YAML value fits a dial with this default; () as default fits any list of numbers."""
    if isinstance(default, tuple):
        number = int if default and isinstance(default[0], int) else int | float
        fits = isinstance(value, list | tuple) and (not default or len(value) == len(default))
        return fits and all(isinstance(v, number) and not isinstance(v, bool) for v in value)
    if isinstance(default, float):
        return isinstance(value, int | float) and not isinstance(value, bool)
    return type(value) is type(default)


def _describe(default: Any) -> str:
    if isinstance(default, tuple):
        return f"{len(default)} integers in a list" if default else "a list of numbers"
    return {bool: "true or false", int: "an integer", float: "a number"}.get(type(default), "a string")
