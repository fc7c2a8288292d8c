"""Frontiers: several checkpoints on one curve of reward against KL, and what is asked of it.

The recipe's section `frontiers` names the places (arm/checkpoint) of each. A claim or a gate then has
`frontier/<name>` where it would else have a place, and a metric such as `heldout/gold_at_kl/2.5`.
"""

from collections.abc import Mapping
from typing import Any

FRONTIER = "frontier"  # stands where an arm stands, so no arm may have the name


def name_of(place: str) -> str | None:
    """`swept` of `frontier/swept`; None of a place of an arm."""
    arm, slash, name = place.partition("/")
    return name if slash and arm == FRONTIER else None


def arms_at(place: str, frontiers: Mapping[str, list[str]]) -> set[str]:
    """The arms that a place is made of: its own, or those of all places of its frontier."""
    name = name_of(place)
    places = [place] if name is None else frontiers.get(name, [])
    return {one.partition("/")[0] for one in places}


def asked(spec: Mapping[str, Any]) -> dict[str, list[str]]:
    """Frontier -> the metrics that claims and gates of a recipe ask of it, each once."""
    metrics: dict[str, dict[str, None]] = {}
    for row in (*spec.get("claims", []), *spec.get("gates", {}).values()):
        other = row.get("against_metric", row["metric"])
        for place, metric in ((row["of"], row["metric"]), (row.get("against", ""), other)):
            if (name := name_of(place)) is not None:
                metrics.setdefault(name, {})[metric] = None
    return {name: list(of_it) for name, of_it in metrics.items()}
