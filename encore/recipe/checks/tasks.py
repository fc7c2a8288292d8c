"""Tasks, templates, corpora and rewards that a stage or an evaluation names."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from encore import worlds
from encore.errors import UserError
from encore.recipe.checks import forms
from encore.recipe.checks.data_sets import check_data_set
from encore.recipe.data_sets import is_data_set
from encore.recipe.schema import check, definition


def check_task(task: Mapping, path: list[str], where: str, hub: str = "task-hub") -> None:
    if is_data_set(task):
        return check_data_set(task, hub, path, where)
    check(task, definition("task-world"), path, where)
    if "world" in task:
        with under(".".join(path), where):
            worlds.make(task)


def check_form(part: Mapping, path: str, where: str) -> None:
    """How the part puts its questions: by its key template or chat."""
    with under(path, where):
        forms.check(part)
        if "template" in part:
            worlds.prompt(part["template"], "")


@contextmanager
def under(path: str, where: str) -> Iterator[None]:
    """Raise the mistakes found in the block with their place in the recipe."""
    try:
        yield
    except UserError as error:
        lines = (f"{path}.{line.removeprefix('task.')}{where}" for line in error.lines)
        raise UserError("\n".join(lines)) from None
