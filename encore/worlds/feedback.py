"""Words of a world on a completion that is wrong, such as the tests that it fails."""

import random
from collections.abc import Callable, Iterable, Iterator

from encore import own_code
from encore.errors import UserError
from encore.worlds.documents import Mixture, mix
from encore.worlds.protocol import Problem, TellingWorld

TRIES = 50  # most attempts at a problem until one is wrong


def feedback_of(world: TellingWorld) -> Callable[[Problem, str], str]:
    """Return a world's method `feedback`, which may be a user's.

    The returned function raises UserError if the method fails, takes more than a minute or returns no text.
    """
    name = f"{type(world).__name__}.feedback"
    method = own_code.bounded(name, world.feedback)

    def words(problem: Problem, completion: str) -> str:
        text = method(problem, completion)
        if not isinstance(text, str):
            raise UserError(f"{name}: expected a text, got {type(text).__name__}")
        return text

    return words


def feedback_on_attempts(
    world: TellingWorld, attempts: Mixture, problems: Iterable[Problem], rng: random.Random
) -> Iterator[str]:
    """Yield, for each problem, what the world says of a wrong attempt at it.

    An attempt is a document of the mixture `attempts`; right ones are drawn again. Raises UserError if TRIES
    attempts at a problem are all right.
    """
    kinds, weights, dials = mix(world, attempts, "attempts")
    words_on = feedback_of(world)
    for problem in problems:
        tries = rng.choices(range(len(kinds)), weights=weights, k=TRIES)
        said = (words_on(problem, world.document(problem, kinds[i], rng, **dials[i])) for i in tries)
        words = next(filter(None, said), None)
        if words is None:
            raise UserError(
                f"attempts: {TRIES} of them at {problem.question!r} are all right; mix in wrong kinds"
            )
        yield words
