"""What a record keeps so that its page can be made again: a hundred samples, and what was installed."""

from collections.abc import Sequence
from importlib import metadata

import pandas as pd

from analysis.provenance.completions import Rollout

PACKAGES = "packages.txt"
MOST = 100  # training completions


def few(rollouts: Sequence[Rollout]) -> Sequence[Rollout]:
    """At most MOST rollouts in their order: as many of every arm, from its first step to its last."""
    if len(rollouts) <= MOST:
        return rollouts
    arms = list(dict.fromkeys(row.arm for row in rollouts))
    each = max(1, MOST // len(arms))
    found = []
    for arm in arms[:MOST]:
        of_arm = [row for row in rollouts if row.arm == arm]
        last = max(1, min(each, len(of_arm)) - 1)
        places = {round(i * (len(of_arm) - 1) / last) for i in range(min(each, len(of_arm)))}
        found += [of_arm[place] for place in sorted(places)]
    return found


def packages(runs: pd.DataFrame) -> str:
    """Every installed package, a line each; first a line for each whose version the runs name otherwise."""
    here = {
        one.metadata["Name"].lower(): one.version for one in metadata.distributions() if one.metadata["Name"]
    }
    ran = {(name, version) for row in runs.versions for name, version in row.items() if name in here}
    lines = [f"# {name} was {version} in a run" for name, version in sorted(ran) if here[name] != version]
    return "\n".join([*lines, *(f"{name}=={version}" for name, version in sorted(here.items()))]) + "\n"
