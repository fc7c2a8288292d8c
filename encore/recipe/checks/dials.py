"""Checks that the sweeps which chose the dials have the seeds and the trials that the recipe states."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from encore.errors import UserError, known
from encore.recipe.claims import Dial
from encore.recipe.graph import Graph, Node
from encore.recipe.recipe import Recipe


def check_dials(graph: Graph, recipe: Recipe) -> None:
    """Check that each sweep that a dial names is a recipe with the dial's seeds and number of trials."""
    for index, dial in enumerate(recipe.document.dials):
        if dial.sweep is not None:
            _check_sweep(graph, recipe, dial, dial.sweep, f"dials[{index}]")


def _check_sweep(graph: Graph, recipe: Recipe, dial: Dial, name: str, path: str) -> None:
    known(f"{path}.sweep", [name], list(graph.recipes), "recipe")
    sweep = graph.recipes[name]
    scales = [scale for scale in recipe.scales if scale in sweep.scales]
    if not scales:
        raise UserError(f"{path}.sweep: recipe {sweep.name} has no scale of this recipe's")
    for scale in scales:
        chosen_arms = sweep.selection(scale, "report", None)[1]
        if set(chosen_arms) != set(dial.seeds):
            raise UserError(
                f"{path}.seeds: expected the seeds of recipe {sweep.name}, {chosen_arms}; "
                f"got {list(dial.seeds)}"
            )
        said = dial.trials or {}
        known(f"{path}.trials", list(said), recipe.arms(scale), f"arm at scale {scale}", as_key=True)
        trials = _trials(graph, recipe, sweep, scale, said)
        for method, number in said.items():
            if trials[method] < number:
                raise UserError(
                    f"{path}.trials.{method}: {number}, but recipe {sweep.name} has {trials[method]} arms "
                    f"nearest to it at scale {scale}"
                )


def _trials(graph: Graph, recipe: Recipe, sweep: Recipe, scale: str, arms: Iterable[str]) -> dict[str, int]:
    """Return arm -> the number of arms of the sweep that are its trials.

    A trial belongs to the arm from which it differs in the fewest settings of the stages that both have.
    `arms` are those for which the recipe states trials. Its other arms are left out: one may be the same
    method with another value of the dial that was swept.
    """
    methods = {arm: _settings(graph, recipe, sweep, scale, arm) for arm in arms}
    count = dict.fromkeys(methods, 0)
    for arm in sweep.arms(scale):
        trial = _settings(graph, sweep, recipe, scale, arm)
        apart = {method: len(trial ^ chosen) for method, chosen in methods.items() if trial & chosen}
        for method, settings in apart.items():
            count[method] += settings == min(apart.values())
    return count


def _settings(graph: Graph, recipe: Recipe, other: Recipe, scale: str, arm: str) -> set[tuple[str, str]]:
    """Return (path, value) of every setting of an arm, in the stages that the other recipe has too."""
    common = [name for name in recipe.stages(scale, arm) if name in other.document.stages]
    nodes = [Node(recipe.name, scale, arm, 0, name, "stage") for name in common]
    return {(path, repr(value)) for node in nodes for path, value in _leaves(graph.config(node), node.name)}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _leaves(below, f"{path}.{key}")
    else:
        yield path, value
