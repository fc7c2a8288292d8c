"""The recipes of this repository and their graph, read once for all tests that change nothing of them.

And the numbers of their experiments at scale paper, each with the comment that stands behind it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from encore.recipe.graph import Graph, Node
from encore.recipe.load import load_all

FOLDER = Path(__file__).parents[2] / "recipes"
RECIPES = load_all(FOLDER)
GRAPH = Graph(RECIPES)

# What says how an experiment is run and shown, not what it is: no paper has it, and none could.
MACHINE = {"threads", "version", "args.save_steps", "args.logging_steps", "batch_size", "k"}
MACHINE_GROUPS = ("backend_args.",)


@dataclass(frozen=True)
class Number:
    """A number of a stage or an evaluation task at scale paper."""

    recipe: str
    arm: str  # the first that has it
    name: str  # of the stage; of a task, `evals.<task>`
    path: str  # `args.learning_rate`
    value: float
    comment: str  # behind it, on its line of the recipe


def numbers(recipe: str) -> list[Number]:
    """Every distinct number of a recipe's stages and evaluation tasks at scale paper, but MACHINE's."""
    found: dict[tuple, Number] = {}
    for arm in RECIPES[recipe].arms("paper"):
        for name, section, keys, config in _configs(recipe, arm):
            for path, value in _leaves(config):
                dotted = ".".join(path)
                if dotted not in MACHINE and not dotted.startswith(MACHINE_GROUPS):
                    comment = _comment(recipe, arm, section, [*keys, *path])
                    key = (name, dotted, value, comment)
                    found.setdefault(key, Number(recipe, arm, name, dotted, value, comment))
    return list(found.values())


def _configs(recipe: str, arm: str) -> Iterator[tuple[str, str, list[str], dict[str, Any]]]:
    """(name, section, place in it, config) of each stage and each evaluation task of an arm."""
    for stage in RECIPES[recipe].stages("paper", arm):
        yield stage, "stages", [stage], GRAPH.config(Node(recipe, "paper", arm, 0, stage, "stage"))
    for checkpoint in RECIPES[recipe].checkpoints("paper", arm):
        tasks = GRAPH.config(Node(recipe, "paper", arm, 0, checkpoint, "eval"))["tasks"]
        for task, config in tasks.items():
            yield f"evals.{task}", "evals", ["tasks", task], config


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], float]]:
    """(path, number) of all numbers in a config; those of a list have the list's path."""
    if isinstance(value, dict):
        for key, below in value.items():
            yield from _leaves(below, (*path, key))
    elif isinstance(value, list):
        for below in value:
            yield from _leaves(below, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield path, value


@cache
def _parsed(path: Path) -> tuple[Any, list[str]]:
    """The tree of nodes of a file, which know their lines; and its lines."""
    text = path.read_text(encoding="utf-8")
    return yaml.compose(text, yaml.CSafeLoader), text.splitlines()


def _comment(recipe: str, arm: str, section: str, keys: Sequence[str]) -> str:
    """What stands behind # on the line of a value; of the layers that give it the last counts."""
    files = RECIPES[recipe].files
    main, paper = files.file(), files.file("paper")
    for path, layer in ((paper, ["arms", arm]), (main, ["arms", arm]), (paper, []), (main, [])):
        root, lines = _parsed(path)
        place = _place(root, lines, [*layer, section, *keys])
        if place is not None:
            node, lines = place
            return lines[node.start_mark.line].partition("#")[2].strip()
    return ""


def _place(node: Any, lines: list[str], keys: Sequence[str]) -> tuple[Any, list[str]] | None:
    """The node of a value below a node, and the lines of its file: its own, or the file of a preset."""
    for index, key in enumerate(keys):
        pairs = (
            {name.value: below for name, below in node.value} if isinstance(node, yaml.MappingNode) else {}
        )
        if key not in pairs:
            used = pairs.get("use")
            names = [used] if isinstance(used, yaml.ScalarNode) else used.value if used else []
            presets = (_place(*_preset(name.value), keys[index:]) for name in names)
            return next((place for place in presets if place), None)
        node = pairs[key]
    return node, lines


@cache
def _preset(name: str) -> tuple[Any, list[str]]:
    """The node of a preset, and the lines of its file."""
    for path in (FOLDER / "presets").glob("*.yaml"):
        root, lines = _parsed(path)
        for key, node in root.value:
            if key.value == name:
                return node, lines
    raise KeyError(name)


WITH_GPU = [name for name, recipe in RECIPES.items() if "gpu" in recipe.scales]
WITH_24_GB = [name for name, recipe in RECIPES.items() if "gpu-24gb" in recipe.scales]
OFFLINE = ("r1_zero", "tldr", "deepseekmath", "policy_gradient")  # have every kind of stage between them
