"""Section "provenance" of the page: completions, health checks, configuration, cost, commands."""

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
from encore.runtime import suite


@dataclass(frozen=True)
class Page:
    """The values that the templates of provenance show."""

    rollouts: Markup  # training completions as JSON
    policies: int  # number of policies that are compared; 0 if only one arm is shown, before and after
    sides: int  # largest number of policies side by side
    pairs: Sequence[Pair]
    failed: Cells
    passed: Cells
    audit: Cells  # the table of verifiers.audit()
    audited: str  # its sums as text: verifiers.errors(); "" without an audit
    differences: Cells
    standing: registration.Standing  # the standing of the claims: whether they are registered
    registration: Cells
    recipe: dict[str, Markup]  # file -> its text, as markup
    facts: dict[str, list[str]]
    cost: Cells
    total: pd.Series  # the last row of the table of cost
    of_a_seed: Mapping[str, float]  # claim -> seconds of one more seed of its arms
    elapsed: float  # seconds during which any stage ran; `total` has the sum over stages
    citation: str


def view(run: Run, result: Provenance) -> View:
    """Return the section of provenance."""
    health = Table("health", "Health checks", result.health)
    cost = Table("cost", "Cost", result.cost, cost_shown(result.cost))
    registered = Table(registration.NAME, "Registration", result.registration)
    audit = verifiers.audit(run)
    page = Page(
        rollouts=script_json(list(map(asdict, result.rollouts))),
        policies=result.policies,
        sides=completions.SIDES,
        pairs=result.pairs,
        failed=cells(result.health[result.health.state != "ok"]),
        passed=cells(result.health[result.health.state == "ok"]),
        audit=cells(audit),
        audited=verifiers.errors(audit) if len(audit) else "",
        standing=registration.standing(result.registration),
        registration=registered.cells,
        differences=cells(configuration.differences(run)),
        recipe={
            name: commented_yaml(path.read_text(encoding="utf-8")) for name, path in run.recipe_files.items()
        },
        facts=configuration.facts(result.jobs) | {"deterministic": configuration.deterministic(run)},
        cost=cost.cells,
        total=result.cost.iloc[-1],
        of_a_seed=of_a_seed(run, result.jobs),
        elapsed=elapsed(result.jobs),
        citation=configuration.citation(suite.folder(run.root) / "CITATION.cff"),
    )
    return View([health, cost, registered], [], page)
