"""Tasks, templates, corpora and rewards that a stage or an evaluation names."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from encore import worlds
from encore.data import corpora
from encore.errors import UserError
from encore.objectives import caps
from encore.recipe.checks import domains, forms
from encore.recipe.checks.data_sets import check_data_set
from encore.recipe.data_sets import is_data_set
from encore.recipe.kinds.rollout import REWARD_MODEL
from encore.recipe.schema import check, definition
from encore.rewards import rules


def check_task(task: Mapping, path: list[str], where: str, hub: str = "task-hub") -> None:
    if is_data_set(task):
        return check_data_set(task, hub, path, where)
    check(task, definition("task-world"), path, where)
    if "world" in task:
        with under(".".join(path), where):
            worlds.make(task)


def check_tasks(stage: Mapping, data_set: str, path: str, where: str) -> None:
    """A stage's task, template and what they offer, or those of each of its domains."""
    if "domains" in stage:
        with under(path, where):
            domains.check_form(stage)
    parts = {f"{path}.domains.{name}": one for name, one in stage.get("domains", {}).items()} or {path: stage}
    for place, part in parts.items():
        if "task" in part:
            hub = "task-hub-prompts" if _unverified(stage["run"], part) else data_set
            check_task(part["task"], [*place.split("."), "task"], where, hub)
            _check_world(stage["run"], part, place, where)
        check_form(part, place, where)
    if "rewards" in stage or "domains" in stage:
        names = [name for own in domains.weights(stage).values() for name in own]
        with under(path, where):
            cap = min(caps.of_stage(stage).values(), default=None)
            rules.check_overlong(names, stage.get("soft_overlong_cache"), cap)


def _unverified(run: str, part: Mapping) -> bool:
    """Whether a reward model alone judges the answers of a stage `grpo`, or of a domain of it."""
    rewards = part.get("rewards", {})
    return run == "grpo" and REWARD_MODEL in rewards and "accuracy" not in rewards


def _check_world(run: str, stage: Mapping, path: str, where: str) -> None:
    """That the task's world has the kinds of document and the rewards that the stage, or domain, names."""
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
            learned = [REWARD_MODEL] if run in ("ppo", "grpo") else []
            rules.check(
                [name for name in stage["rewards"] if name not in learned],
                world,
                stage["task"].get("verifier", "math"),
            )


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
