"""What a claim needs before its mechanism can be seen at all: gates, read from text and held to a number.

A gate is a quantity of the base arm of a comparison (a manipulation check), named in the recipe's section
`gates`. A claim's `needs` lists conditions on gates; where one is not met the claim is not tested.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from encore.errors import UserError, nearest

FORMS = "GATE >= NUMBER, GATE <= NUMBER or GATE within P%"
RELATIONS = (">=", "<=", "within")
NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"


@dataclass(frozen=True)
class Need:
    """A condition on a gate, in its unit; the bound of `within` is a share of the target: 0.2 for 20%."""

    gate: str
    relation: Literal[">=", "<=", "within"]
    bound: float

    def __str__(self) -> str:
        bound = f"{100 * self.bound:g}%" if self.relation == "within" else f"{self.bound:g}"
        return f"{self.gate} {self.relation} {bound}"


def needs(claim: Mapping[str, Any]) -> list[Need]:
    """What a claim needs, in its order. Raises UserError as `parse` does."""
    texts = claim.get("needs", [])
    return [parse(text) for text in ([texts] if isinstance(texts, str) else texts)]


def parse(text: str) -> Need:
    """`clip_cuts >= 0.02` as a Need. Raises UserError, one line without the place."""
    parts = text.split()
    if len(parts) != 3:
        raise UserError(f'expected {FORMS}, got "{text}"')
    gate, relation, bound = parts
    if relation not in RELATIONS:
        raise UserError(f'unknown relation "{relation}" in "{text}"{nearest(relation, list(RELATIONS))}')
    share = relation == "within"
    if not re.fullmatch(f"{NUMBER}%" if share else NUMBER, bound):
        wanted = "a percentage such as 20%" if share else "a number"
        raise UserError(f'expected {wanted} after {relation}, got "{bound}" in "{text}"')
    value = float(bound.rstrip("%")) / (100 if share else 1)
    if share and value <= 0:
        raise UserError(f'expected more than 0% after within, got "{bound}" in "{text}"')
    return Need(gate, cast(Literal[">=", "<=", "within"], relation), value)


def met(value: float, need: Need, target: float | None) -> bool:
    """Whether a gate's value fulfils the need; nan never does. `target` is the gate's, for `within` alone."""
    if need.relation == ">=":
        return value >= need.bound
    if need.relation == "<=":
        return value <= need.bound
    if target is None:
        raise UserError(
            f"gates.{need.gate}.target: missing; what is it to be within {100 * need.bound:g}% of?"
        )
    return abs(value - target) <= need.bound * abs(target)
