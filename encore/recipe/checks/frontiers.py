"""Section `frontiers`: that each has places enough for a curve, each once, and is asked for something.

That the places exist and score what is asked of them is checked with the claim or gate that asks, at its
scales (checks.claims).
"""

from encore.errors import UserError
from encore.recipe.frontiers import asked
from encore.recipe.recipe import Recipe

FEWEST = 2  # places, between which a score can be interpolated


def check(recipe: Recipe) -> None:
    wanted = asked(recipe.spec)
    for name, places in recipe.spec.get("frontiers", {}).items():
        path = f"frontiers.{name}"
        if name not in wanted:
            raise UserError(f"{path}: no claim or gate uses it; remove it")
        if len(places) < FEWEST:
            raise UserError(f"{path}: expected {FEWEST} places or more, got {len(places)}")
        for index, place in enumerate(places):
            if place in places[:index]:
                raise UserError(f'{path}[{index}]: "{place}" is written twice')
