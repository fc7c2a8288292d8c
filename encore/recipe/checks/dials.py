"""On which seeds a recipe's dials were chosen: none that is judged, and the same budget for every method."""

from collections.abc import Iterator, Mapping
from typing import Any

from encore.errors import UserError, known
from encore.recipe.claims import Dial
from encore.recipe.document import Document
from encore.recipe.graph import Graph, Node
from encore.recipe.looks import LOOKS
from encore.recipe.recipe import DIAL_SEEDS, Recipe


def check(document: Document) -> None:
    """What a recipe's file says of its dials by itself. Raises UserError, one line."""
    dials, first = document.dials, document.first_seed
    if dials and document.claims and first >= DIAL_SEEDS:
        raise UserError(
            f"first_seed: seeds from {DIAL_SEEDS} on are for dials, and claims are judged on those below; "
            f"got {first}"
        )
    judged = range(first, first + LOOKS[-1]) if first < DIAL_SEEDS else range(0)
    after = max((s for dial in dials for s in dial.seeds if s in judged), default=0) + 1
    for index, dial in enumerate(dials):
        path = f"dials[{index}]"
        if mistaken := [seed for seed in dial.seeds if seed in judged]:
            raise UserError(
                f"{path}.seeds: seed {mistaken[0]} would be judged too: judged seeds count from first_seed "
                f"({first}), up to {len(judged)} of them; set first_seed: {after}, or choose dials on seeds "
                f"from {DIAL_SEEDS} on"
            )
        _check_budget(f"{path}.trials", dial.trials or {})


def _check_budget(path: str, trials: Mapping[str, int]) -> None:
    """That every method had as many trials as the first."""
    if not trials:
        return
    first, budget = next(iter(trials.items()))
    for method, number in trials.items():
        if number != budget:
            raise UserError(
                f"{path}: {first} has {budget}, {method} {number}; a fair comparison gives every method "
                "as many; write further ones in an entry of their own"
            )


def check_sweeps(graph: Graph, recipe: Recipe) -> None:
    """That every sweep named is a recipe with the dial's seeds and with the trials that the dial counts."""
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
        own = sweep.selection(scale, "report", None)[1]
        if set(own) != set(dial.seeds):
            raise UserError(
                f"{path}.seeds: expected those of recipe {sweep.name}, {own}; got {list(dial.seeds)}"
            )
        found = _trials(graph, recipe, sweep, scale)
        for method, number in (dial.trials or {}).items():
            known(f"{path}.trials", [method], recipe.arms(scale), f"arm at scale {scale}", as_key=True)
            if found[method] < number:
                raise UserError(
                    f"{path}.trials.{method}: {number}, but recipe {sweep.name} has {found[method]} arms "
                    f"nearest to it at scale {scale}"
                )


def _trials(graph: Graph, recipe: Recipe, sweep: Recipe, scale: str) -> dict[str, int]:
    """Arm of the recipe -> how many arms of the sweep are trials of it.

    A trial is of the arm from which it differs in the fewest settings of the stages both have.
    """
    methods = {arm: _settings(graph, recipe, sweep, scale, arm) for arm in recipe.arms(scale)}
    count = dict.fromkeys(methods, 0)
    for arm in sweep.arms(scale):
        trial = _settings(graph, sweep, recipe, scale, arm)
        apart = {method: len(trial ^ own) for method, own in methods.items() if trial & own}
        for method, settings in apart.items():
            count[method] += settings == min(apart.values())
    return count


def _settings(graph: Graph, recipe: Recipe, other: Recipe, scale: str, arm: str) -> set[tuple[str, str]]:
    """(path, value) of every setting of an arm, in the stages that the other recipe has too."""
    both = [name for name in recipe.stages(scale, arm) if name in other.document.stages]
    nodes = [Node(recipe.name, scale, arm, 0, name, "stage") for name in both]
    return {(path, repr(value)) for node in nodes for path, value in _leaves(graph.config(node), node.name)}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, below in value.items():
            yield from _leaves(below, f"{path}.{key}")
    else:
        yield path, value
