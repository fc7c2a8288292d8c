"""The documents of a corpus: their tags, their filler, and the mixture of their kinds."""

import inspect
import random
from collections.abc import Mapping
from math import inf
from typing import Any

from encore.errors import UserError, nearest
from encore.worlds.protocol import World

# dials with a share as value; other dials are mean numbers of tokens or tries
SHARES = ("error", "right", "switch", "other", "repeat", "drop", "lost", "misread")
LARGEST = {"weight": inf, **dict.fromkeys(SHARES, 1.0)}

Mixture = Mapping[str, Any]  # kind of document -> its weight, or its weight and its dials


def tagged(scratch: str, answer: str) -> str:
    return f"<think>{scratch}</think><answer>{answer}</answer>"


def geometric(mean: float, rng: random.Random) -> int:
    """Return a number from the geometric distribution (0, 1, …) with the given mean."""
    count = 0
    while rng.random() < mean / (1 + mean):
        count += 1
    return count


def dots(mean: float, rng: random.Random) -> str:
    """Return filler dots, whose number is geometric with the given mean."""
    return "." * geometric(mean, rng)


def mix(
    world: World, mixture: Mixture, key: str = "mixture"
) -> tuple[list[str], list[float], list[dict[str, float]]]:
    """Return the kinds, their weights and their dials in `{kind: weight, kind: {weight: w, dial: value}}`.

    `key`: the key of the recipe that has the mixture. Raises UserError for an unknown kind or dial, and for a
    bad value.
    """
    parsed = []
    for kind, item in mixture.items():
        where = f"{key}.{kind}"
        if kind not in world.kinds:
            raise UserError(
                f'{where}: world "{world.name}" has no kind "{kind}"{nearest(kind, [*world.kinds])}'
            )
        dials = dict(item) if isinstance(item, Mapping) else {"weight": item}
        known = inspect.signature(world.kinds[kind]).parameters.values()
        names = [p.name for p in known if p.kind is p.KEYWORD_ONLY]
        for dial, value in dials.items():
            if dial not in ("weight", *names):
                raise UserError(f'{where}: no dial "{dial}"{nearest(dial, ["weight", *names])}')
            most = LARGEST.get(dial, 100.0)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
                raise UserError(f"{where}.{dial}: expected a number from 0 to {most:g}, got {value!r}")
        if "weight" not in dials:
            raise UserError(f"{where}: weight is missing")
        parsed.append((kind, float(dials.pop("weight")), dials))
    kinds, weights, settings = ([*column] for column in zip(*parsed, strict=True)) if parsed else ([], [], [])
    if not 0 < sum(weights) < inf:
        raise UserError(f"{key}: expected at least one kind with a weight above 0")
    return kinds, weights, settings
