"""Tasks, templates, corpora and rewards that a stage or an evaluation names."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from recipes import worlds
from recipes.data import corpora
from recipes.errors import UserError
from recipes.rewards import rules
from recipes.spec.checks import ppo
from recipes.spec.schema import check, definition


def check_task(task: Mapping, path: list[str], where: str, hub: str = "task-hub") -> None:
    check(task, definition(hub if "hub" in task else "task-world"), path, where)
    if "world" in task:
        with under(".".join(path), where):
            worlds.make(task)


def check_world(stage: Mapping, path: str, where: str) -> None:
    """That the task's world has the kinds of document and the rewards that the stage names."""
    world = worlds.of_task(stage["task"])
    if "corpus" in stage:
        if world is None:
            raise UserError(f"{path}.task: a corpus is written by a world; this task has none{where}")
        if "mixture" in stage["corpus"]:
            with under(f"{path}.corpus", where):
                corpora.check(world, stage["corpus"])
    if "rewards" in stage:
        if not stage["rewards"]:
            raise UserError(f"{path}.rewards: must not be empty{where}")
        with under(path, where):
            own = ppo.own if stage["run"] == "ppo" else list
            rules.check(own(stage["rewards"]), world)
            cap = stage.get("args", {}).get("max_completion_length")
            rules.check_overlong(stage["rewards"], stage.get("soft_overlong_cache"), cap)


def check_template(template: str, path: str, where: str) -> None:
    with under(path, where):
        worlds.prompt(template, "")


@contextmanager
def under(path: str, where: str) -> Iterator[None]:
    """Raise the mistakes found in the block with their place in the recipe."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{path}.{str(error).removeprefix('task.')}{where}") from None
