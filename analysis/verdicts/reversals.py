"""Reversed claims, and their possible causes in our world, which a recipe with a record must give."""

from collections.abc import Iterable

from analysis.verdicts import claims
from analysis.verdicts.rule import REVERSED
from encore.errors import UserError
from encore.recipe.claims import Claim
from encore.recipe.recipe import Recipe


def causes(recipe: Recipe, verdicts: Iterable[claims.Verdict]) -> dict[str, str]:
    """Return the id of each reversed claim -> its possible cause in our world."""
    return {claim.id: claim.world or "" for claim in _reversed(recipe, verdicts)}


def check_reversals(recipe: Recipe, verdicts: Iterable[claims.Verdict]) -> None:
    """Raise UserError with a line for each reversed claim whose cause its recipe does not give."""
    silent = [claim.id for claim in _reversed(recipe, verdicts) if claim.world is None]
    if silent:
        raise UserError("\n".join(recipe.files.located(_missing(claim)) for claim in silent))


def _reversed(recipe: Recipe, verdicts: Iterable[claims.Verdict]) -> list[Claim]:
    stated = recipe.document.claims
    return [stated[v.id] for v in verdicts if v.word == REVERSED and v.id in stated]


def _missing(claim: str) -> str:
    return (
        f"claims.{claim}.world: missing; the claim came out {REVERSED}: expected a sentence on what in our "
        "world may cause it"
    )
