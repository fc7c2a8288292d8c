"""The effects of claims at each size of the model: kept in a file beside the records, and read from it."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from analysis.numbers import in_words
from analysis.numbers.recorded import of_record
from analysis.numbers.run import Run
from analysis.numbers.table import collect
from analysis.provenance import jobs
from analysis.verdicts.claims import Verdict, read_verdicts
from analysis.verdicts.decision import judge_run
from encore.errors import UserError
from encore.recipe.graph import Graph

FOLDER = "sizes"  # beside the records
FILE = "effects.csv"
BASE = "cpu"  # the scale whose record has the smallest size


@dataclass(frozen=True)
class Effect:
    """The difference that a claim is about, in one seed of a recipe at one size."""

    recipe: str
    scale: str
    parameters: int  # of the policy that the recipe's first arm trains
    claim: str
    seed: int
    difference: float
    commit: str  # of the code that trained the run's last stage


def of_run(run: Run) -> list[Effect]:
    """Return the effects of the primary claims in a run that were tested in two seeds or more.

    Raises UserError if there are none, or if a stage was trained by code that no commit has.
    """
    numbers = collect(run)
    size = in_words.parameters(run, numbers)
    runs = jobs.committed(run)
    if size is None or runs.empty:
        where = f"results/{run.name}/{run.scale}"
        raise UserError(
            f"{where}: no finished run; run `snakemake --cores {run.name} --config scale={run.scale}`"
        )
    effects = list(
        _effects(run, judge_run(run, numbers)[-1], size, runs.sort_values("started").commit.iloc[-1])
    )
    if not effects:
        raise UserError(
            f"{run.name}, scale {run.scale}: none of its primary claims was tested in two seeds or more"
        )
    return effects


def of_base(published: Path, recipe: str, graph: Graph) -> list[Effect]:
    """Return the effects of the primary claims in the record of a recipe at scale BASE.

    The list is empty if there is no such record.
    """
    folder = published / f"{recipe}-{BASE}"
    if not folder.exists():
        return []
    run, numbers = of_record(folder, graph)
    size = in_words.parameters(run, numbers)
    return list(_effects(run, read_verdicts(folder / "claims.csv"), size, "")) if size else []


def _effects(run: Run, verdicts: Sequence[Verdict], size: int, commit: str) -> Iterator[Effect]:
    """Yield the difference of each seed of each primary claim."""
    claims = run.document.claims
    for verdict in verdicts:
        if claims[verdict.id].primary and verdict.n > 1:
            for seed, difference in zip(verdict.seeds, verdict.differences, strict=True):
                yield Effect(run.name, run.scale, size, verdict.id, seed, round(difference, 6), commit)


def keep(effects: Sequence[Effect], folder: Path) -> None:
    """Write the effects of one run into `folder`, in place of earlier effects of its claims and seeds.

    Other seeds of the same recipe, scale and size stay: a large size can be run a few seeds at a time.
    """
    recipe, scale, size = effects[0].recipe, effects[0].scale, effects[0].parameters
    replaced = {(effect.claim, effect.seed) for effect in effects}
    others = [
        effect
        for effect in read_effects(folder)
        if (effect.recipe, effect.scale) != (recipe, scale)
        or (effect.parameters == size and (effect.claim, effect.seed) not in replaced)
    ]
    rows = others + list(effects)
    rows.sort(key=lambda effect: (effect.recipe, effect.parameters, effect.claim, effect.seed))
    folder.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(map(asdict, rows)).to_csv(folder / FILE, index=False)


def read_effects(folder: Path) -> list[Effect]:
    """Return the effects in `folder`; [] if there are none."""
    if not (folder / FILE).exists():
        return []
    return [Effect(*row) for row in pd.read_csv(folder / FILE).itertuples(index=False)]
