"""Whether worlds have as many distinct questions as is asked of them, which only drawing them tells.

The questions are those of the stage itself, so a run that is planned finds them too.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from recipes import worlds
from recipes.errors import Mistakes, UserError
from recipes.spec.graph import Graph, Node

# kinds that ask distinct questions
DRAWING = ("grpo", "policy_gradient", "ppo", "rejection_sampling", "sample")


class Asked(NamedTuple):
    place: str  # of the recipe
    task: Mapping[str, Any]  # with a world
    questions: int
    split: str


def check(graph: Graph, nodes: Iterable[Node]) -> None:
    """Raise UserError, a line for each world of these nodes that has fewer questions than are asked."""
    mistakes, known = Mistakes(), set()
    for node in nodes:
        for asked in _asked(graph, node):
            key = json.dumps(asked[1:], sort_keys=True)
            if key not in known and "world" in asked.task:
                known.add(key)
                with mistakes.gather():
                    _draw(asked, node)
    mistakes.tell()


def _draw(asked: Asked, node: Node) -> None:
    try:
        worlds.sample(worlds.make(asked.task), asked.questions, node.seed, asked.split)
    except UserError as error:
        where = f" (scale {node.scale}, arm {node.arm})"
        raise UserError(f"recipes/{node.recipe}.yaml: {asked.place}.{error}{where}") from None


def _asked(graph: Graph, node: Node) -> Iterator[Asked]:
    config = graph.config(node)
    if node.kind == "eval":
        for name, task in config["tasks"].items():
            if "task" in task:
                yield Asked(f"evals.tasks.{name}", task["task"], task["items"], "test")
    elif config["run"] in DRAWING:
        parts = {f"stages.{node.name}.domains.{name}": one for name, one in config.get("domains", {}).items()}
        for place, part in (parts or {f"stages.{node.name}": config}).items():
            count = part.get("problems") or worlds.PROBLEMS
            yield Asked(place, part["task"], config.get("skip", 0) + count, "train")
