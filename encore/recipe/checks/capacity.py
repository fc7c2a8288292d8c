"""Whether worlds, and files of one's own, have as many questions as is asked of them.

Of a world only drawing them tells; they are those of the stage itself, so a run that is planned finds them
too. The rows of a file are counted.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from encore import worlds
from encore.errors import Mistakes, UserError
from encore.recipe import batch
from encore.recipe.graph import Graph, Node

# kinds that ask distinct questions
DRAWING = ("grpo", "policy_gradient", "ppo", "rejection_sampling", "sample")

MOST = (
    100_000  # questions of a world: to draw so many takes up to ten seconds, at each start and in each stage
)


class Asked(NamedTuple):
    place: str  # of the recipe
    task: Mapping[str, Any]
    questions: int
    split: str
    why: str  # so many: the key that says it, or what takes them


def check(graph: Graph, nodes: Iterable[Node]) -> None:
    """Raise UserError, a line for each world or file of these nodes with fewer questions than are asked."""
    mistakes, known = Mistakes(), set()
    for node in nodes:
        for asked in _asked(graph, node):
            key = json.dumps(asked[1:], sort_keys=True)
            if key not in known:
                known.add(key)
                with mistakes.gather():
                    _find(graph, asked, node)
    mistakes.tell()


def _find(graph: Graph, asked: Asked, node: Node) -> None:
    try:
        if "world" in asked.task:
            if asked.questions > MOST:
                wrong = f"expected at most {MOST} questions of a world, got {asked.questions}"
                raise UserError(f"{asked.why}: {wrong}")
            worlds.sample(worlds.make(asked.task), asked.questions, node.seed, asked.split)
        elif "file" in asked.task and (there := rows(Path(asked.task["file"]))) < asked.questions:
            raise UserError(
                f"task.file: {asked.task['file']} has {there} rows; {asked.why} asks for {asked.questions}"
            )
    except UserError as error:
        where = f" (scale {node.scale}, arm {node.arm})"
        with graph.recipes[node.recipe].files.told():
            raise UserError(f"{asked.place}.{error}{where}") from None


def _asked(graph: Graph, node: Node) -> Iterator[Asked]:
    config = graph.config(node)
    if node.kind == "eval":
        for name, task in config["tasks"].items():
            if "task" in task:
                yield Asked(f"evals.tasks.{name}", task["task"], task["items"], "test", "items")
    elif config["run"] in DRAWING:
        parts = {f"stages.{node.name}.domains.{name}": one for name, one in config.get("domains", {}).items()}
        for place, part in (parts or {f"stages.{node.name}": config}).items():
            yield _of_training(place, part, config)


def _of_training(place: str, part: Mapping[str, Any], config: Mapping[str, Any]) -> Asked:
    """What a stage asks of a task. Of a file it takes all rows unless `problems` says how many."""
    count = part.get("problems")
    rollout = 0 if "domains" in config else _prompts(config)
    if "world" in part["task"]:
        questions = config.get("skip", 0) + (count or worlds.PROBLEMS)
        return Asked(place, part["task"], questions, "train", "problems")
    if (count or 0) >= rollout:
        return Asked(place, part["task"], config.get("skip", 0) + (count or 1), "train", "problems")
    return Asked(place, part["task"], rollout, "train", "one rollout")


def _prompts(config: Mapping[str, Any]) -> int:
    """Prompts of a rollout of TRL's on one process; 0 where the recipe does not say how long one is."""
    if "num_generations" not in config.get("args", {}) or not batch.rollout(config):
        return 0
    return batch.completions(config) // int(config["args"]["num_generations"])


def rows(file: Path) -> int:
    """How many a file of JSON lines or Parquet has."""
    if file.suffix == ".parquet":
        from pyarrow import parquet  # late: a start need not wait for it

        return int(parquet.read_metadata(file).num_rows)
    with file.open(encoding="utf-8", errors="replace") as lines:
        return sum(bool(line.strip()) for line in lines)
