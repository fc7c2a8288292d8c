"""The steps of a recipe's `stage_ladder`, and the stages that each is made of, read from the graph."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.numbers.run import Run
from analysis.numbers.tasks import tasks
from encore.recipe.graph import Node


@dataclass(frozen=True)
class Step:
    """A checkpoint of an arm, by the name that the paper gives it."""

    name: str
    arm: str
    checkpoint: str

    @property
    def at(self) -> str:
        return f"{self.arm}/{self.checkpoint}"


@dataclass(frozen=True)
class Made:
    """How one seed's model of a step came to be; all stages are owners, upstream first."""

    of: tuple[Node, ...]  # every stage that it is made of
    own: tuple[Node, ...]  # those that no step above it is made of
    trained: tuple[Node, ...]  # those of `own` that its policy went through, pretraining left out
    after: tuple[str, ...]  # the steps above it that it is built on


def steps(run: Run) -> list[Step]:
    """The recipe's steps whose arm is among the run's; none without the key, or with one step alone."""
    places = [(step.name, *step.at.split("/")) for step in run.document.stage_ladder]
    found = [Step(name, arm, checkpoint) for name, arm, checkpoint in places if arm in run.arms]
    return found if len(found) > 1 else []


def evaluated(run: Run, ladder: Sequence[Step]) -> list[str]:
    """The evaluation tasks of all steps, each once."""
    return list(dict.fromkeys(task for step in ladder for task in tasks(run, step.arm, step.checkpoint)))


def made(run: Run, ladder: Sequence[Step], seed: int) -> dict[str, Made]:
    """Step's name -> how it was made with this seed. A model from the Hub or a folder is made of nothing."""
    by_name: dict[str, Made] = {}
    models: dict[str, Node | None] = {}
    for step in ladder:
        evaluation = run.evaluation(step.arm, step.checkpoint, seed)
        model = models[step.name] = run.graph.inputs(evaluation).get("model")
        of = tuple(run.graph.with_upstream([model])) if model else ()
        before = {node for other in by_name.values() for node in other.of}
        by_name[step.name] = Made(
            of=of,
            own=tuple(node for node in of if node not in before),
            trained=_trained(run, model, before),
            after=tuple(name for name in by_name if models[name] in of),
        )
    return by_name


def _trained(run: Run, model: Node | None, before: set[Node]) -> tuple[Node, ...]:
    """The stages from which a policy went to the next, back to one in `before` or to a model from nothing."""
    path: list[Node] = []
    while model and model not in before and run.graph.stage(model).run != "pretrain":
        path.insert(0, model)
        model = run.graph.inputs(model).get("policy")
    return tuple(path)
