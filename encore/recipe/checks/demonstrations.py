"""Where demonstrations come from that no other stage makes: a world or a Hub dataset."""

from collections.abc import Mapping
from typing import Any

from encore import worlds
from encore.data import corpora
from encore.errors import UserError
from encore.recipe import schema
from encore.recipe.checks import forms
from encore.recipe.checks.data_sets import check_data_set


def check_source(given: Mapping[str, Any], path: str) -> None:
    """Raise UserError unless the block at `path` of a stage is a sound source with a size or a share."""
    if "task" not in given:
        raise UserError(f"{path}.task: missing")
    world = "world" in given["task"]
    place = [*path.split("."), "task"]
    if world:
        schema.check(given["task"], schema.definition("task-world"), place)
    else:
        check_data_set(given["task"], "task-hub-demonstrations", place)
    try:
        check_keys(given)
        forms.check(given)
        if "template" in given:
            worlds.prompt(given["template"], "")
        if world:
            corpora.check(worlds.make(given["task"]), given["corpus"])
    except UserError as error:
        raise UserError(f"{path}.{error}") from None


def check_keys(given: Mapping[str, Any]) -> None:
    """Raise UserError unless a source has the keys that its kind of task needs, and no other."""
    forms.check_demonstrations(given)
    sized = "share" in given
    if "world" not in given["task"]:
        if "corpus" in given:
            raise UserError("corpus: a corpus is written by a world; this task has none")
        if sized and "problems" in given:
            raise UserError("problems: share says how many rows; remove one of the two")
        return
    for key in ("template", "corpus"):
        if key not in given:
            raise UserError(f"{key}: missing; a world writes its demonstrations by it")
    if "mixture" not in given["corpus"]:
        raise UserError("corpus.mixture: missing")
    if sized and "documents" in given["corpus"]:
        raise UserError("corpus.documents: share says how many; remove one of the two")
    if not sized and "documents" not in given["corpus"]:
        raise UserError("corpus.documents: missing")
    if "problems" in given:
        raise UserError("problems: of a Hub dataset; a world writes corpus.documents")
