"""The evaluations of an arm: its checkpoints, the tasks they are asked, and the models that score answers."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Annotated, Any

from pydantic import AfterValidator, Field, ValidationError

from encore.errors import UserError, known
from encore.recipe import lm_eval_tasks, protocols
from encore.recipe.base import Identifier, Mistake, Model, Name, below
from encore.recipe.data_sets import unpinned
from encore.recipe.eval_tasks import ROLES, EvalTask
from encore.recipe.machine import Engine, Resources, check_one
from encore.recipe.mistakes import lines
from encore.recipe.sensitivity import MARK, Protocol, Sensitivity, evaluation_name, parts
from encore.recipe.task import DataSet

OF_GRAPH = ("checkpoints", protocols.KEY)  # keys of a task that the job of its evaluation does not get


def _with_names(tasks: dict[str, EvalTask]) -> dict[str, EvalTask]:
    return {name: task.named(name) for name, task in tasks.items()}


Tasks = Annotated[dict[Name, EvalTask], AfterValidator(_with_names)]


class Evaluation(Engine):
    """The evaluation of one checkpoint, in the form that its job gets."""

    seed: int | None = None
    # tasks of `sensitivity` have names that a recipe cannot use
    tasks: Annotated[dict[str, EvalTask], AfterValidator(_with_names)] = {}

    def mistakes(self) -> Iterator[Mistake]:
        """Yield the mistakes of each task, and a mistake if there is no task."""
        if not self.tasks:
            yield "tasks", "expected at least one task"
        for name, task in self.tasks.items():
            yield from below(f"tasks.{name}", task.mistakes())


class OneMachine(Resources):
    """The machine of an evaluation."""

    nodes: Annotated[int, Field(ge=1, le=1)] = 1


class Models(Model):
    """The models, beside the policy, with which tasks score: stages, named as in `needs`."""

    reference: str | None = None  # the policy that score kl is measured against
    proxy: str | None = None  # the reward model of score proxy

    @cached_property
    def by_role(self) -> dict[str, str]:
        """The stage of each role that is set, by the role."""
        roles = {"reference": self.reference, "proxy": self.proxy}
        return {role: stage for role, stage in roles.items() if stage is not None}


class Evals(Engine):
    """The checkpoints and tasks of an arm, and the way they are evaluated."""

    # The machine; by default the evaluated stage's machine or, if it has several nodes, one of them.
    resources: OneMachine = OneMachine()
    checkpoints: dict[Identifier, str] = {}  # name -> a stage, or a model that a stage needs: `grpo.policy`
    models: Models = Models()
    # A table of the report: one task with every combination of these choices, by the first arm and seed,
    # before and after training.
    sensitivity: Sensitivity | None = None
    tasks: Tasks = {}

    @property
    def ends(self) -> list[str]:
        """The first and the last checkpoint, as before and after training; fewer if there are fewer."""
        names = list(self.checkpoints)
        return names[:1] + names[1:][-1:]

    @property
    def data_sets(self) -> dict[str, DataSet]:
        """The data sets of the tasks that have one, by the task's name."""
        return {name: task.task for name, task in self.tasks.items() if isinstance(task.task, DataSet)}

    @property
    def protocols(self) -> list[Protocol]:
        """The combinations of choices in `sensitivity`; the one of all first choices comes first."""
        if self.sensitivity is None:
            return []
        return self.sensitivity.protocols(self.tasks[self.sensitivity.task].temperature, self.backend)

    @property
    def sensitivity_evaluations(self) -> list[str]:
        """The names of the evaluations that `sensitivity` asks for."""
        backends = dict.fromkeys(protocol.backend for protocol in self.protocols)
        return [evaluation_name(checkpoint, backend) for checkpoint in self.ends for backend in backends]

    def evaluation(self, name: str, checkpoint: str, of_base: bool) -> Evaluation:
        """Return evaluation `name`, as its job gets it.

        `of_base`: whether the checkpoint is a model that none of the recipe's stages has made.
        """
        keys = {key: getattr(self, key) for key in Engine.model_fields if key in self.model_fields_set}
        if backend := parts(name)[1]:
            if backend != self.backend:
                keys.pop("backend_args", None)  # they belong to the recipe's own engine
            return Evaluation(**keys | {"backend": backend, "tasks": self._by_protocol()})
        left_out = OF_GRAPH if of_base else (*OF_GRAPH, "templates")
        tasks = {
            name: task.changed(**dict.fromkeys(left_out)) if {*left_out} & task.model_fields_set else task
            for name, task in self.tasks.items()
            if checkpoint in (task.checkpoints or (checkpoint,))
        }
        return Evaluation(**keys | {"tasks": tasks})

    def _by_protocol(self) -> dict[str, EvalTask]:
        """Return protocol -> the task of `sensitivity` in it, with one sample at temperature 0."""
        assert self.sensitivity is not None
        asked, task = self.sensitivity, self.tasks[self.sensitivity.task]
        task = task.changed(checkpoints=None, protocol=None, templates=None, score=None, k=[1])
        tasks = {}
        for protocol in self.protocols:
            form = asked.form(protocol, task.form)
            tasks[protocol.task] = task.changed(
                template=None if form.chat else form.template,
                chat=form.chat,
                temperature=protocol.temperature,
                items=asked.items or task.items,
                samples=(asked.samples or task.samples) if protocol.temperature else 1,
            )
        return tasks

    def mistakes(self, is_first_arm: bool) -> Iterator[Mistake]:
        """Yield the mistakes within these keys; `sensitivity` is checked for the first arm only."""
        for name in self.checkpoints:
            if MARK in name:
                words = f'a name with "{MARK}" belongs to sensitivity; call it something else'
                yield f"checkpoints.{name}", words
        check_one(self.resources.gpu)
        yield from self._order()
        if self.tasks and not self.checkpoints:
            yield "checkpoints", "missing: there are tasks, and nothing to measure by them"
            return
        sound = True
        for name, task in self.tasks.items():
            mistakes = [*below("", self._of_recipe(task))]
            sound = sound and not mistakes
            yield from below(f"tasks.{name}", iter(mistakes or task.mistakes()))
        asked = (task.checkpoints or self.checkpoints for task in self.tasks.values())
        if sound and {*self.checkpoints} - {checkpoint for names in asked for checkpoint in names}:
            yield "tasks", "expected at least one task of each checkpoint"
        if is_first_arm and self.sensitivity:
            yield from below("sensitivity", self._of_sensitivity(self.sensitivity))

    def _order(self) -> Iterator[Mistake]:
        """Yield a mistake if a stage's initial model is listed after the stage's product."""
        places = list(self.checkpoints.items())
        for index, (name, place) in enumerate(places):
            earlier = next((other for other, at in places[:index] if place == f"{at}.policy"), None)
            if earlier:
                yield (
                    f"checkpoints.{name}",
                    f"written after {earlier}, which is trained from it; write it before: the first is shown "
                    "as before training, the last as after it",
                )

    def _of_recipe(self, task: EvalTask) -> Iterator[Mistake]:
        """Yield a mistake for each protocol, checkpoint or other name that does not exist."""
        protocols.check_protocol(task.protocol)
        known("checkpoints", task.checkpoints or (), list(self.checkpoints), "checkpoint")
        if task.task is not None:
            yield from below("task", task.task.mistakes())
        if task.lm_eval is not None:
            lm_eval_tasks.find(task.lm_eval)
        for score in task.score:
            role = ROLES.get(score)
            if role and role not in self.models.by_role:
                yield "score", f"{score} needs evals.models.{role}, which is missing"

    def _of_sensitivity(self, asked: Sensitivity) -> Iterator[Mistake]:
        known("task", [asked.task], list(self.tasks), "task")
        task = self.tasks[asked.task]
        if task.lm_eval is not None:
            yield "task", f"lm-eval's {task.lm_eval} has its own prompt; name another task"
        elif not task.is_verified:
            yield "task", f"nothing verifies the answers of {asked.task}; name another task"
        if len(self.ends) < 2:
            yield "", "expected a checkpoint before and one after training; there is one alone"
        yield from asked.mistakes(task.temperature, self.backend)


def read_evals(evals: Mapping[str, Any], where: str = "") -> Evals:
    """Return the evaluations of an arm at a scale, with all layers merged.

    Raises UserError with all mistakes in types, in lines that end with `where`; `Evals.mistakes` has others.
    """
    try:
        return Evals.model_validate(evals)
    except ValidationError as error:
        raise UserError("\n".join(lines(error, evals, ["evals"], where))) from None


def check_layer(layer: Mapping[str, Any], path: str) -> None:
    """Raise UserError with all mistakes in one layer of `evals`; keys that it lacks are no mistake."""
    try:
        Evals.model_validate(layer)
    except ValidationError as error:
        if mistakes := lines(error, layer, [path], whole=False):
            raise UserError("\n".join(mistakes)) from None


def job(config: Mapping[str, Any]) -> Evaluation:
    """Return the evaluation in a job's config. Raises UserError with all mistakes in types or keys."""
    config = unpinned(config)
    try:
        evaluation = Evaluation.model_validate(config)
    except ValidationError as error:
        raise UserError("\n".join(lines(error, config, ["evals"]))) from None
    if mistakes := [*below("evals", evaluation.mistakes())]:
        raise UserError("\n".join(f"{key}: {words}" for key, words in mistakes))
    return evaluation
