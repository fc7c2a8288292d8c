"""Tasks and sources of demonstrations as the types of a recipe, of mappings that may name local folders."""

from collections.abc import Mapping
from typing import Any

from encore.recipe.corpus import Corpus, DemonstrationSource
from encore.recipe.form import Form, Formed
from encore.recipe.kinds import SftStage
from encore.recipe.task import (
    Comparisons,
    DataSet,
    DemonstrationRows,
    LabelledSteps,
    Questions,
    Task,
    WorldTask,
)


def task(keys: Mapping[str, Any], kind: type[DataSet] = Questions) -> Any:
    """The task of these keys; `hub` may be a folder, which a recipe's model refuses."""
    made: Task
    made = WorldTask.model_validate(keys) if "world" in keys else kind.model_construct(**keys)
    return made


def comparisons(keys: Mapping[str, Any]) -> Any:
    return task(keys, Comparisons)


def steps(keys: Mapping[str, Any]) -> Any:
    return task(keys, LabelledSteps)


def source(keys: Mapping[str, Any]) -> DemonstrationSource:
    """A source of demonstrations."""
    own = DemonstrationSource.model_fields.keys() - {"task", "corpus"}
    other = {key: value for key, value in keys.items() if key in own and value is not None}
    made = DemonstrationSource.model_validate(other)
    corpus = Corpus.model_validate(keys["corpus"]) if "corpus" in keys else None
    return made.model_copy(update={"task": task(keys["task"], DemonstrationRows), "corpus": corpus})


def form(keys: Mapping[str, Any]) -> Form:
    """The form of a part of these keys."""
    return Formed.model_validate(keys).form


def corpus(keys: Mapping[str, Any]) -> tuple[WorldTask, str, Corpus]:
    """Task, template and corpus of these keys."""
    return task(keys["task"]), keys["template"], Corpus.model_validate(keys["corpus"])


def sft(keys: Mapping[str, Any]) -> SftStage:
    """A stage sft whose sources have these keys."""
    own = ("task", "template", "chat", "corpus", "problems", "also")
    sources = {key: value for key, value in keys.items() if key in own}
    return SftStage.model_validate({"run": "sft", **sources})
