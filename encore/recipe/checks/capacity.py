"""Checks that worlds and users' files have as many questions as the recipe needs.

A world is checked by drawing the very questions of the stage or evaluation. The rows of a file are counted.
"""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from encore import worlds
from encore.errors import Mistakes, UserError
from encore.recipe.graph import Graph, Node
from encore.recipe.kinds.pretrain import PretrainStage
from encore.recipe.kinds.rollout import RolloutStage
from encore.recipe.kinds.sft import SftStage
from encore.recipe.kinds.stage import Asking
from encore.recipe.task import Asked, DataSet, EnvironmentTask, GymTask, Task, WorldTask
from encore.runtime import extras
from encore.worlds.environment import LIBRARIES

# largest number of questions to draw from a world; to draw more would take over ten seconds at each start
MOST = 100_000


class Count(NamedTuple):
    """The number of questions that a recipe needs from a task."""

    place: str  # place in the recipe
    task: Task
    questions: int
    split: str
    why: str  # the key that sets the number, or the part that uses the questions


def check_capacity(graph: Graph, nodes: Iterable[Node]) -> None:
    """Raise UserError with a line for each world or file that has fewer questions than these nodes need."""
    mistakes, known = Mistakes(), set()
    for node in nodes:
        for asked in _asked(graph, node):
            key = json.dumps([asked.task.said, *asked[2:]], sort_keys=True)
            if key not in known:
                known.add(key)
                with mistakes.gather():
                    _find(graph, asked, node)
    mistakes.tell()


def _find(graph: Graph, asked: Count, node: Node) -> None:
    task, file = asked.task, asked.task.file if isinstance(asked.task, DataSet) else None
    try:
        if isinstance(task, GymTask):
            extras.require_gym(task.reasoning_gym)
        if isinstance(task, EnvironmentTask):
            if task.environment in LIBRARIES:
                extras.require_environment(task.environment)
            return  # to plan a recipe need not start an environment, which may be a server
        if isinstance(task, WorldTask):
            if asked.questions > MOST:
                wrong = f"expected at most {MOST} questions of a world, got {asked.questions}"
                raise UserError(f"{asked.why}: {wrong}")
            worlds.sample(task.make_world(), asked.questions, node.seed, asked.split)
        elif file and (available := rows(Path(file))) < asked.questions:
            raise UserError(f"task.file: {file} has {available} rows; {asked.why} asks for {asked.questions}")
    except UserError as error:
        where = f" (scale {node.scale}, arm {node.arm})"
        with graph.recipes[node.recipe].files.told():
            raise UserError(f"{asked.place}.{error}{where}") from None


def _asked(graph: Graph, node: Node) -> Iterator[Count]:
    if node.kind == "eval":
        for name, task in graph.evaluation(node).tasks.items():
            if task.task:
                questions = task.skip + (task.items or 0)
                yield Count(f"evals.tasks.{name}", task.task, questions, "test", "items")
        return
    stage = graph.stage(node)
    if isinstance(stage, PretrainStage | SftStage) and stage.corpus:
        for number, further in enumerate(stage.corpus.also or ()):
            if further.leaked:
                place = f"stages.{node.name}.corpus.also[{number}]"
                yield Count(place, further.task, further.leaked, "test", "leaked")
    for name, part in stage.parts.items():
        if isinstance(stage, Asking) and isinstance(part, Asked):
            place = f"stages.{node.name}.domains.{name}" if name else f"stages.{node.name}"
            yield _of_training(place, part, stage)


def _of_training(place: str, part: Asked, stage: Asking) -> Count:
    """Return the count of questions that a part of a stage needs; for a data set, at least one rollout."""
    task, count, skipped = part.questions, part.problems, getattr(stage, "skip", 0)
    rollout = _prompts(stage) if part is stage else 0
    if isinstance(task, WorldTask):
        return Count(place, task, skipped + (count or worlds.PROBLEMS), "train", "problems")
    if (count or 0) >= rollout:
        return Count(place, task, skipped + (count or 1), "train", "problems")
    return Count(place, task, rollout, "train", "one rollout")


def _prompts(stage: Asking) -> int:
    """Return the number of prompts in a rollout of TRL on one process; 0 if the recipe does not fix it."""
    if not isinstance(stage, RolloutStage) or stage.lengths is None:
        return 0
    said = "num_generations" in stage.args.model_fields_set
    return stage.completions() // (stage.args.num_generations or 1) if said else 0


def rows(file: Path) -> int:
    """Return the number of rows of a file of JSON lines or Parquet."""
    if file.suffix == ".parquet":
        from pyarrow import parquet  # imported here, so that a start need not wait for it

        return int(parquet.read_metadata(file).num_rows)
    with file.open(encoding="utf-8", errors="replace") as lines:
        return sum(bool(line.strip()) for line in lines)
