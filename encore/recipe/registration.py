"""The registration of a recipe: its claims, gates and arms as they were before a judged seed was run.

`encore register` writes it into REGISTERED beside recipe.yaml, and its author commits it. A judged run names
its own commit. So whoever has the repository can compare what was registered at that commit with what was
judged (analysis.provenance.registration).
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from encore.errors import UserError
from encore.recipe import strict_yaml
from encore.recipe.base import Model
from encore.recipe.claims import Claim, Comparison, Gate
from encore.recipe.files import REGISTERED, Files
from encore.recipe.graph import Graph, Node
from encore.recipe.looks import LOOKS
from encore.recipe.recipe import Recipe

RULE = 2  # the version of the rule of analysis.verdicts.rule; version 1 judged until 2026-11-24
HEAD = """\
# Written by `encore register`, and to be committed before the first judged seed is run. Do not edit it: a
# claim, a gate or an arm that differs from what stood here when its runs were made is not registered.
"""


class RegisteredGate(Comparison):
    """A registered gate, with its values on dial seeds."""

    takes_null = True
    target: float | None = None
    values: dict[str, float]  # dial seed -> the value of the gate
    mean: float
    low: float  # lower end of the 95% interval of the mean
    high: float

    def asks_as(self, gate: Gate) -> bool:
        """Return whether a recipe's gate measures the same as this one and has the same target."""
        return all(
            getattr(self, name) == getattr(gate, name) for name in (*Comparison.model_fields, "target")
        )


class RegisteredClaim(Comparison):
    """The parts of a claim that decide it, as they were registered."""

    takes_null = True
    direction: str
    margin: float
    smallest_effect: float
    primary: bool
    attempt: int
    needs: list[str]


class Registration(Model):
    """The registration of one scale of a recipe."""

    rule: int  # the version of the rule of verdicts
    looks: list[int]
    first_seed: int
    claims: dict[str, RegisteredClaim]
    gates: dict[str, RegisteredGate]
    arms: dict[str, str]  # arm -> a hash of everything that its stages and evaluations depend on


def claim(stated: Claim) -> RegisteredClaim:
    """Return what is registered of a recipe's claim: the parts that decide it."""
    test = stated.test
    return RegisteredClaim(
        metric=test.metric,
        of=test.of,
        against=test.against,
        against_metric=test.against_metric,
        direction=test.direction,
        margin=test.margin,
        smallest_effect=test.matters,
        primary=stated.primary,
        attempt=stated.attempt,
        needs=list(map(str, stated.needs)),
    )


def of(graph: Graph, recipe: Recipe, scale: str, gates: Mapping[str, RegisteredGate]) -> Registration:
    """Return the registration at a scale of the recipe as it is now, with the values of its gates."""
    claims = recipe.claims(scale)
    compared = {arm for stated in claims for arm in recipe.document.arms_of(stated)}
    return Registration(
        rule=RULE,
        looks=list(LOOKS),
        first_seed=recipe.first_seed,
        claims={stated.id: claim(stated) for stated in claims},
        gates=dict(gates),
        arms={arm: of_arm(graph, recipe, scale, arm) for arm in recipe.arms(scale) if arm in compared},
    )


def of_arm(graph: Graph, recipe: Recipe, scale: str, arm: str) -> str:
    """Return 16 hex digits of a hash of the lineages of an arm's stages and evaluations."""
    kinds = {"stage": recipe.stages(scale, arm), "eval": recipe.evaluations(scale, arm)}
    nodes = [
        Node(recipe.name, scale, arm, recipe.first_seed, name, kind)
        for kind, names in kinds.items()
        for name in names
    ]
    return sha256(" ".join(map(graph.lineage, nodes)).encode()).hexdigest()[:16]


def path(files: Files) -> Path:
    """Return the file of a recipe's registration: REGISTERED in its folder, or NAME.registered.yaml."""
    return files.path / REGISTERED if files.path.is_dir() else files.path.with_suffix(f".{REGISTERED}")


def parse(text: str, place: str) -> dict[str, Registration]:
    """Return scale -> registration from the text of a file. Raises UserError with the place of a mistake."""
    content = strict_yaml.parse(text, place)
    if not isinstance(content, dict):
        raise UserError(f"{place}: expected a mapping of scales; write it anew by encore register")
    return dict(_parsed(content, place))


def _parsed(content: Mapping[str, Any], place: str) -> Iterator[tuple[str, Registration]]:
    for scale, registered in content.items():
        try:
            yield scale, Registration.model_validate(registered)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            key = ".".join(map(str, (scale, *first["loc"])))
            raise UserError(f"{place}: {key}: {first['msg']}; write it anew by encore register") from None


def write(file: Path, scale: str, registration: Registration) -> None:
    """Write the registration of a scale into a file; the registrations of other scales stay."""
    kept = parse(file.read_text(encoding="utf-8"), str(file)) if file.exists() else {}
    scales = {
        name: each.model_dump(exclude_none=True) for name, each in (kept | {scale: registration}).items()
    }
    text = yaml.safe_dump(scales, sort_keys=False, width=110, default_flow_style=None)
    file.write_text(HEAD + text, encoding="utf-8")
