"""The list of recipes at a glance: their cost, their results in results/, and their verdicts."""

from pathlib import Path

from tabulate import tabulate

from analysis.verdicts import claims, whose
from encore.recipe.graph import Graph
from encore.recipe.load import load_sound
from encore.runtime import suite

RECORDS = "results/published"


def table(scale: str) -> str:
    """Return, as text, a table with a row for each recipe that has the scale."""
    recipes, broken = load_sound()
    graph = Graph(recipes)
    rows = [
        (name, recipe.document.cost.get(scale, ""), _state(graph, name, scale), _verdicts(name, scale))
        for name, recipe in recipes.items()
        if scale in recipe.scales
    ]
    text = tabulate(rows, ("recipe", "cost", "here", "verdicts"), maxcolwidths=[None, 34, None, 44])
    return "\n".join([text, *(f"{error.lines[0]}; left out" for error in broken.values())])


def _state(graph: Graph, name: str, scale: str) -> str:
    """Return how many jobs of the whole report are done in results/ of the current folder."""
    nodes = graph.grid(name, scale, *graph.recipes[name].selection(scale, "report", None))
    done = sum(Path(node.sentinel).exists() for node in nodes)
    return f"{done} of {len(nodes)} jobs" if done else "-"


def _verdicts(name: str, scale: str) -> str:
    """Return the number of claims with each verdict, from the report made here or else from the record."""
    for where, note in (
        (Path("results", name, scale, "report"), ""),
        (suite.folder() / RECORDS / f"{name}-{scale}", " (record)"),
    ):
        if (where / "claims.csv").exists():
            return f"{whose.counts(claims.read_verdicts(where / 'claims.csv'))}{note}"
    return "-"
