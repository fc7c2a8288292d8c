"""The resolved settings of an arm, with which it runs: all layers of the recipe are merged."""

import json
from collections.abc import Iterator
from typing import Any

from analysis.numbers.run import Run
from encore.recipe.graph import Node


def settings(run: Run, arm: str) -> Iterator[tuple[str, str]]:
    """Yield key and value, as text, of each resolved setting of an arm's own stages and evaluations."""
    yield from of_stages(run, arm)
    for name in run.checkpoints(arm):
        yield from _flat(name, run.graph.config(run.evaluation(arm, name)))


def of_stages(run: Run, arm: str) -> Iterator[tuple[str, str]]:
    """Yield key and value of each setting of an arm's own stages, and which stages they need as inputs."""
    for name in run.recipe.stages(run.scale, arm):
        node = Node(run.name, run.scale, arm, run.seeds[0], name, "stage")
        yield from _flat(name, run.graph.config(node))
        for role, source in run.graph.inputs(node).items():
            yield f"{name}.needs.{role}", f"{run.label(source)}@{source.arm}"


def _flat(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _flat(f"{key}.{name}", below)
    else:
        yield key, value if isinstance(value, str) else json.dumps(value)
