"""The page results/published/methods.md: the costs and gains of each method in our records.

methods.yaml says which arm of which record shows a method. Every number comes from the record, except for the
number of models in memory, which the planner counts.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import yaml

from analysis.arms import uncertainty
from analysis.numbers.means import DASH, number, with_interval
from analysis.numbers.recorded import RUNS, of_earlier_world, of_record
from analysis.numbers.run import Run
from analysis.page import markdown
from analysis.statistics.intervals import interval
from encore.forecast.hardware import Assumptions
from encore.forecast.job import Job
from encore.forecast.work import of_node
from encore.recipe.graph import Graph, Node

SCALE = "cpu"
HEAD = """# What each method cost here

What each method needs, costs and gains in our records at scale `cpu`: models of a tenth of a million to
half a million parameters on procedural tasks. It is no guide to which method to take for another model.
Within one table all begin, with each seed, from the same checkpoint, and the gain is paired by seed, with its
95% interval over seeds; between tables nothing can be compared. *Models* stand in memory at the fullest: the
policy, and a reference, a critic or a reward model beside it. *Cost* is the operations of all that leads from
the one checkpoint to the other, a seed: drawing, labelling and training. *Collapsed*: seeds that ended far
below where they began; *warned*: the health checks that did.
Written by `python -m analysis.publish --index` from
[`analysis/methods.yaml`](../../analysis/methods.yaml).
"""
SHARED = (
    "All seeds share one base model: the interval lacks its error, and that of its one measurement where the "
    "checkpoint before is the base model."
)
COLUMNS = (
    "method",
    "arm",
    "data beside prompts",
    "models",
    "cost",
    "before",
    "after",
    "gain",
    "collapsed; warned",
)


@dataclass(frozen=True)
class Shown:
    """A method, and where it is measured: an arm of a recipe, two checkpoints of the arm, and a metric."""

    method: str
    recipe: str
    arm: str
    start: str
    end: str
    metric: str
    data: str


def _tables() -> Iterator[tuple[str, list[Shown]]]:
    """Yield (title, methods) of each table of methods.yaml."""
    for table in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")):
        methods = table.pop("methods")
        yield table["title"], [_shown(table | method) for method in methods]


def _shown(entry: Mapping[str, str]) -> Shown:
    names = ("method", "recipe", "arm", "from", "to", "metric", "data")
    return Shown(*(entry[name] for name in names))


@dataclass(frozen=True)
class Compared:
    """The table of the methods of one record, all from the same first checkpoint, with columns COLUMNS."""

    title: str
    record: str
    metric: str
    shared: str  # a sentence on what the interval leaves out; "" if every seed has its own base model
    rows: list[tuple[str, ...]]


def compared(folder: Path, graph: Graph) -> list[Compared]:
    """Return the tables of methods.yaml, from the records in `folder`.

    A table is left out if its record is missing or of an earlier world.
    """
    result = []
    for title, methods in _tables():
        record = folder / f"{methods[0].recipe}-{SCALE}"
        if record.exists() and not of_earlier_world(record, graph):
            run, numbers = of_record(record, graph)
            shared = SHARED if uncertainty.shares_base(run) else ""
            rows = list(_rows(methods, record, run, numbers))
            result.append(Compared(title, record.name, methods[0].metric, shared, rows))
    return result


def page(tables: Sequence[Compared]) -> str:
    """Return the page as Markdown."""
    parts = [HEAD]
    for table in tables:
        lines = [COLUMNS, ("---",) * len(COLUMNS), *table.rows]
        source = f"Record: [{table.record}]({table.record}), `{table.metric}`. {table.shared}".rstrip()
        parts.append(f"## {table.title}\n\n{source}\n\n" + markdown.lines(lines))
    return "\n".join(parts)


def _rows(methods: list[Shown], record: Path, run: Run, numbers: pd.DataFrame) -> Iterator[tuple[str, ...]]:
    """Yield a row (the cells of COLUMNS) for each method of a record; `numbers`: the final numbers."""
    runs, collapses, checks = (pd.read_csv(record / name) for name in (RUNS, "collapses.csv", "health.csv"))
    flops = runs.set_index(["arm", "seed", "stage"]).flops
    for shown in methods:
        values = numbers[(numbers.arm == shown.arm) & (numbers.metric == shown.metric)]
        wide = values[values.seed.isin(run.seeds)].pivot(index="seed", columns="node", values="value")
        yield (*_measured(shown, run, wide, flops), _broke(shown.arm, collapses, checks))


def _measured(shown: Shown, run: Run, values: pd.DataFrame, flops: pd.Series) -> tuple[str, ...]:
    """Return all cells of a row but the last.

    `values`: the metric, a row for each seed and a column for each checkpoint. `flops`: the floating-point
    operations of each stage, indexed by arm, seed and stage.
    """
    pairs = values[[shown.start, shown.end]].dropna()
    gains = (pairs[shown.end] - pairs[shown.start]).to_list()
    stages = [_own_stages(run, shown, int(seed)) for seed in pairs.index]
    spent = [sum(flops[owner.arm, owner.seed, run.label(owner)] for owner in of_seed) for of_seed in stages]
    jobs = [of_node(run.graph, node, Assumptions()) for node in stages[0]]
    metric = shown.metric.partition("/")[2]
    return (
        shown.method,
        f"`{shown.arm}`",
        shown.data,
        str(max(map(_models, jobs))),
        f"{sum(spent) / len(spent):.2g}",
        number(pairs[shown.start].mean(), metric),
        number(pairs[shown.end].mean(), metric),
        with_interval(sum(gains) / len(gains), *interval(gains), metric),
    )


def _own_stages(run: Run, shown: Shown, seed: int) -> list[Node]:
    """Return the stages that lead from the checkpoint `start` to `end`, as the nodes that own them."""
    ends = [run.evaluation(shown.arm, name, seed) for name in (shown.start, shown.end)]
    # models that score an evaluation's answers, such as a reward model, are not part of the checkpoint
    makers = [run.graph.maker(end) for end in ends]
    before, after = (run.graph.with_upstream([maker] if maker else []) for maker in makers)
    return list(dict.fromkeys(run.graph.owner(node) for node in after if node not in before))


def _models(job: Job) -> int:
    """Return the number of models that a job holds in memory."""
    return sum(model is not None for model in (job.policy, job.reference, job.critic)) + len(job.rewards)


def _broke(arm: str, collapses: pd.DataFrame, checks: pd.DataFrame) -> str:
    """Return a text on the collapsed seeds of an arm and on its health checks that warned; a dash if none."""
    of_arm = collapses[(collapses.arm == arm) & (collapses.collapsed > 0)]
    collapsed = [f"{k} of {n} seeds" for k, n in zip(of_arm.collapsed, of_arm.runs, strict=True)]
    warned = checks[(checks.arm == arm) & (checks.state != "ok")].check.drop_duplicates().to_list()
    return "; ".join([*collapsed, ", ".join(warned)]).strip("; ") or DASH
