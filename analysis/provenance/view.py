"""Provenance on the page: completions, health checks, configuration, cost, and how to run it again."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import pandas as pd
from markupsafe import Markup

from analysis.numbers.run import Run
from analysis.page.markup import commented_yaml, script_json
from analysis.page.tables import Cells, Table, cells
from analysis.page.view import View
from analysis.provenance import completions, configuration, registration, verifiers
from analysis.provenance.build import Provenance
from analysis.provenance.completions import Pair
from analysis.provenance.cost import cost_shown, elapsed, of_a_seed


@dataclass(frozen=True)
class Page:
    """The values that the templates of provenance show."""

    rollouts: Markup  # JSON of training completions
    policies: int  # that are compared; 0: of one arm before and after
    sides: int  # at most so many of them stand side by side
    pairs: Sequence[Pair]
    failed: Cells
    passed: Cells
    audit: Cells  # of the verifiers; and in words how often they erred
    audited: str
    differences: Cells
    standing: registration.Standing  # whether the claims are registered
    registration: Cells
    recipe: dict[str, Markup]  # file -> its text
    facts: dict[str, list[str]]
    cost: Cells
    total: pd.Series  # the last row of cost()
    of_a_seed: Mapping[str, float]  # claim -> seconds of one more seed of its arms
    elapsed: float  # seconds; the total's are a sum over stages
    runs: Cells
    citation: str


def view(run: Run, found: Provenance) -> View:
    """The section."""
    health = Table("health", "Health checks", found.health)
    cost = Table("cost", "Cost", found.cost, cost_shown(found.cost))
    registered = Table(registration.NAME, "Registration", found.registration)
    audit = verifiers.audit(run)
    page = Page(
        rollouts=script_json(list(map(asdict, found.rollouts))),
        policies=found.policies,
        sides=completions.SIDES,
        pairs=found.pairs,
        failed=cells(found.health[found.health.state != "ok"]),
        passed=cells(found.health[found.health.state == "ok"]),
        audit=cells(audit),
        audited=verifiers.errors(audit) if len(audit) else "",
        standing=registration.standing(found.registration),
        registration=registered.cells,
        differences=cells(configuration.differences(run)),
        recipe={
            name: commented_yaml(path.read_text(encoding="utf-8")) for name, path in run.recipe_files.items()
        },
        facts=configuration.facts(found.jobs),
        cost=cost.cells,
        total=found.cost.iloc[-1],
        of_a_seed=of_a_seed(run, found.jobs),
        elapsed=elapsed(found.jobs),
        runs=cells(configuration.runs(found.jobs)),
        citation=configuration.citation(run.root / "CITATION.cff"),
    )
    return View([health, cost, registered], [], page)
