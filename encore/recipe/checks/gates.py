"""Gates and the claims that need them: that each is there, needed, and can be measured."""

from encore.errors import UserError, known
from encore.recipe.checks.claims import check_place
from encore.recipe.gates import Need, needs
from encore.recipe.recipe import Recipe


def check(recipe: Recipe) -> None:
    """Every claim's needs, and every gate at each scale of the claims that need it."""
    gates = recipe.spec.get("gates", {})
    scales: dict[str, set[str]] = {name: set() for name in gates}  # gate -> where a claim needs it
    for claim in recipe.spec.get("claims", []):
        path = f"claims.{claim['id']}"
        for need in _needs(claim, path):
            known(f"{path}.needs", [need.gate], list(gates), "gate")
            if need.relation == "within" and not gates[need.gate].get("target"):
                raise UserError(
                    f"gates.{need.gate}.target: expected a number other than 0, "
                    f"for {path} needs it within {100 * need.bound:g}% of that"
                )
            scales[need.gate] |= set(claim.get("scales", recipe.spec["scales"]))
    for name, gate in gates.items():
        path = f"gates.{name}"
        if not scales[name]:
            raise UserError(f"{path}: no claim needs it; remove it")
        if "against_metric" in gate and "against" not in gate:
            raise UserError(f"{path}.against_metric: it goes with against, which is missing")
        for scale in recipe.spec["scales"]:
            if scale in scales[name]:
                check_place(recipe, scale, path, gate, "of", "metric")
                if "against" in gate:
                    other = "against_metric" if "against_metric" in gate else "metric"
                    check_place(recipe, scale, path, gate, "against", other)


def _needs(claim: dict, path: str) -> list[Need]:
    try:
        return needs(claim)
    except UserError as error:
        raise UserError(f"{path}.needs: {error}") from None
