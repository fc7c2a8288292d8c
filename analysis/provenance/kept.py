"""What a record keeps so that its page can be made again: a hundred samples, and what was installed."""

from collections.abc import Mapping
from importlib import metadata
from typing import Any

import pandas as pd

PACKAGES = "packages.txt"
MOST = 100  # training completions


def thinned(shown: Mapping[str, Any]) -> dict[str, Any]:
    """What an analysis keeps beside its tables, with at most MOST training completions, spread over arms."""
    few = {name: dict(of_section) for name, of_section in shown.items()}
    for of_section in few.values():
        if len(rows := of_section.get("rollouts", [])) > MOST:
            of_section["rollouts"] = _spread(rows)
    return few


def _spread(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """At most MOST rows, as many of every arm as can be, from its first step to its last; in their order."""
    arms = list(dict.fromkeys(row["arm"] for row in rows))
    each = max(1, MOST // len(arms))
    found = []
    for arm in arms[:MOST]:
        own = [row for row in rows if row["arm"] == arm]
        last = max(1, min(each, len(own)) - 1)
        places = {round(i * (len(own) - 1) / last) for i in range(min(each, len(own)))}
        found += [own[place] for place in sorted(places)]
    return found


def packages(runs: pd.DataFrame) -> str:
    """Every installed package, a line each; first a line for each whose version the runs name otherwise."""
    here = {
        one.metadata["Name"].lower(): one.version for one in metadata.distributions() if one.metadata["Name"]
    }
    ran = {(name, version) for row in runs.versions for name, version in row.items() if name in here}
    lines = [f"# {name} was {version} in a run" for name, version in sorted(ran) if here[name] != version]
    return "\n".join([*lines, *(f"{name}=={version}" for name, version in sorted(here.items()))]) + "\n"
