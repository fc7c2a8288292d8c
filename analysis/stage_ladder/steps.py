"""The steps of a recipe's `stage_ladder`, the stages that lead to each step, and their joined curves."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from analysis.numbers.run import Run
from analysis.numbers.tasks import tasks
from encore.recipe.graph import Node


@dataclass(frozen=True)
class Step:
    """A step of the ladder: a checkpoint of an arm, with the name that the paper gives it."""

    name: str
    arm: str
    checkpoint: str

    @property
    def at(self) -> str:
        return f"{self.arm}/{self.checkpoint}"


@dataclass(frozen=True)
class Made:
    """The stages that made the model of a step in one seed, as the nodes that own them, upstream first."""

    of: tuple[Node, ...]  # all stages that lead to the model
    own: tuple[Node, ...]  # stages of `of` that lead to no earlier step of the ladder
    trained: tuple[Node, ...]  # stages of `own` that trained the policy itself, without pretraining
    after: tuple[str, ...]  # names of earlier steps whose models lead to this one


def steps(run: Run) -> list[Step]:
    """Return the steps of the recipe's `stage_ladder` whose arms are in the run; [] if fewer than two are."""
    places = [(step.name, *step.at.split("/")) for step in run.document.stage_ladder]
    present_steps = [Step(name, arm, checkpoint) for name, arm, checkpoint in places if arm in run.arms]
    return present_steps if len(present_steps) > 1 else []


def evaluated(run: Run, ladder: Sequence[Step]) -> list[str]:
    """Return the evaluation tasks of all steps, each once."""
    return list(dict.fromkeys(task for step in ladder for task in tasks(run, step.arm, step.checkpoint)))


def made(run: Run, ladder: Sequence[Step], seed: int) -> dict[str, Made]:
    """Return each step's name -> the stages that made its model with this seed.

    A model from the Hub or a folder has no stages.
    """
    by_name: dict[str, Made] = {}
    models: dict[str, Node | None] = {}
    for step in ladder:
        evaluation = run.evaluation(step.arm, step.checkpoint, seed)
        model = models[step.name] = run.graph.maker(evaluation)
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
    """Return the stages that trained a policy, after the latest stage in `before` or after pretraining."""
    path: list[Node] = []
    while model and model not in before and run.graph.stage(model).run != "pretrain":
        path.insert(0, model)
        model = run.graph.inputs(model).get("policy")
    return tuple(path)


CURVE = ["seed", "step", "metric", "value"]


@dataclass(frozen=True)
class Segment:
    """The curves that one stage logged, which begin where the step that it is built on ends.

    So two steps that are built on the same step begin together, such as R1-Zero and the cold start of R1.
    """

    step: str  # name of the step of the ladder
    stage: str
    start: float  # number of updates before the stage
    end: float  # number of updates up to the end of the stage
    rows: pd.DataFrame  # rows with the columns CURVE; `step` counts from `start` on


@dataclass(frozen=True)
class Climb:
    segments: tuple[Segment, ...]
    ends: dict[str, float]  # name of a step -> number of updates up to its end
    chain: tuple[str, ...]  # the last step, and the steps that it is built on

    @property
    def boundaries(self) -> list[float]:
        """The numbers of updates at which one step of the chain ends and the next begins."""
        return sorted({self.ends[name] for name in self.chain[:-1]} - {0.0})


def climb(run: Run, table: pd.DataFrame, ladder: Sequence[Step]) -> Climb:
    """Return the curves of all steps, in the ladder's order; a stage without a curve counts no updates."""
    logged = {str(source): rows for source, rows in table[table.step.notna()].groupby("source")}
    by_seed = {seed: made(run, ladder, seed) for seed in run.seeds}
    first = by_seed[run.seeds[0]]
    segments: list[Segment] = []
    ends: dict[str, float] = {}
    for step in ladder:
        at = max((ends[name] for name in first[step.name].after), default=0.0)
        for place, node in enumerate(first[step.name].trained):
            rows = _rows(
                logged, {seed: by[step.name].trained[place].sentinel for seed, by in by_seed.items()}
            )
            if len(rows):
                end = at + float(rows.step.max())
                rows = rows.assign(step=rows.step + at)
                segments.append(Segment(step.name, run.label(node), at, end, rows))
                at = end
        ends[step.name] = at
    chain = (*first[ladder[-1].name].after, ladder[-1].name) if ladder else ()
    return Climb(tuple(segments), ends, chain)


def _rows(logged: dict[str, pd.DataFrame], sources: dict[int, str]) -> pd.DataFrame:
    """Return the curves of one stage, with the columns CURVE; a model that seeds share comes once.

    `logged` maps the file of a result to its curves; `sources` maps a seed to the file of the stage's result.
    """
    once = {source: seed for seed, source in reversed(sources.items()) if source in logged}
    parts = [logged[source].drop_duplicates(["step", "metric"]).assign(seed=seed)[CURVE]
             for source, seed in sorted(once.items(), key=lambda pair: pair[1])]  # fmt: skip
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=CURVE)
