"""The recipes of this repository and their graph, read once for all tests that change nothing of them."""

from pathlib import Path

from recipes.spec.graph import Graph
from recipes.spec.load import load_all

RECIPES = load_all(Path(__file__).parents[2] / "recipes")
GRAPH = Graph(RECIPES)
