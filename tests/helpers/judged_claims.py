"""Claims judged on made-up numbers. A flat claim is a mapping with the keys of its test beside its own."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from analysis.numbers.table import COLUMNS
from analysis.verdicts import decision as judging
from analysis.verdicts.claims import Verdict
from encore.recipe.claims import Claim, Gate, Test, with_ids

CLAIM = {
    "id": "gain",
    "says": "It helps.",
    "source": "Fig. 1",
    "paper": "2501.12948",
    "metric": "heldout/accuracy",
    "of": "base-recipe/after",
    "against": "base-recipe/before",
    "direction": "higher",
    "margin": 0.1,
}


def by_id(claims: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Flat claims as a recipe's file has them: below their ids, which are theirs or their positions."""
    written = {}
    for index, claim in enumerate(claims):
        own = {key: value for key, value in claim.items() if key not in (*Test.model_fields, "id")}
        test = {key: value for key, value in claim.items() if key in Test.model_fields}
        test = {"direction": "higher", "margin": 0.0} | test
        said = {"says": "It holds.", "source": "Fig. 1", "paper": "2501.12948"}
        written[claim.get("id", f"c{index}")] = {**said, **own, "test": test}
    return written


def flat(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The claims of a recipe's file, flat."""
    return [
        {"id": name, **{key: value for key, value in claim.items() if key != "test"}, **claim["test"]}
        for name, claim in spec["claims"].items()
    ]


def typed(claims: Iterable[Mapping[str, Any]]) -> list[Claim]:
    """Flat claims as the recipe's types."""
    claims_by_id = {name: Claim.model_validate(claim) for name, claim in by_id(claims).items()}
    return list(with_ids(claims_by_id).values())


def comparison(claim: Mapping[str, Any]) -> Test:
    """What a flat claim compares."""
    return typed([claim])[0].test


def judge_looks(
    claims: Iterable[Mapping[str, Any]],
    numbers: pd.DataFrame,
    scale: str,
    seeds: Iterable[int],
    gates: Mapping[str, Mapping[str, Any]] | None = None,
    **options: Any,
) -> list[list[Verdict]]:
    """judge_looks() of flat claims and of gates as a recipe's file has them."""
    places = {name: Gate.model_validate(gate) for name, gate in (gates or {}).items()}
    return judging.judge_looks(typed(claims), numbers, scale, seeds, places, **options)


def table(after: Sequence[float], before: Sequence[float], shared: bool = False) -> pd.DataFrame:
    """Rows of one arm, one value a seed; `shared`: every seed read the same artefacts."""
    rows = []
    for node, column in (("after", after), ("before", before)):
        for seed, value in enumerate(column):
            source = f"{node}-{0 if shared else seed}"
            where = ["toy", "cpu", "base-recipe", seed, node, math.nan, "heldout/accuracy"]
            rows.append([*where, value, math.nan, math.nan, source])
    return pd.DataFrame(rows, columns=COLUMNS)


def judge(after, before=0.0, seeds=None, scale="cpu", shared=False, **changes) -> Verdict:
    """The verdict on CLAIM with these changes; `before` may be one number for all seeds."""
    before = [before] * len(after) if isinstance(before, float) else before
    seeds = range(len(after)) if seeds is None else seeds
    return judge_looks([CLAIM | changes], table(after, before, shared), scale, seeds)[-1][0]
