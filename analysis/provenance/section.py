"""Provenance: completions, health checks, configuration, cost, and how to run it again."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from analysis.numbers import tasks
from analysis.numbers.run import Run
from analysis.numbers.table import final
from analysis.page.markup import commented_yaml, script_json
from analysis.page.section import Contents, Made, shown
from analysis.page.tables import Table, cells, read_text
from analysis.preferences.contenders import contenders, judged_task
from analysis.provenance import completions, configuration, health, verifiers
from analysis.provenance.cost import cost, cost_shown, elapsed
from analysis.provenance.cost import read as read_cost
from analysis.provenance.jobs import FILE, read

NAME = "provenance"
TABLES = ("health", "cost")


def contents(run: Run, table: pd.DataFrame, made: Made) -> Contents:
    numbers, spent = final(table), cost(run)
    task = judged_task(run, numbers)
    among = contenders(run, numbers, task) if task else []
    pairs = (
        completions.side_by_side(run, task, among)
        if among
        else completions.before_after(run, tasks.headline(run))
    )
    return Contents(
        [
            Table("health", "Health checks", health.worst(health.checks(run))),
            Table("cost", "Cost", spent, cost_shown(spent)),
        ],
        shown={"rollouts": completions.rollouts(run), "policies": len(among), "pairs": pairs},
    )


@dataclass(frozen=True)
class Page:
    rollouts: Markup  # JSON of training completions
    policies: int  # that are compared; 0: of one arm before and after
    sides: int  # at most so many of them stand side by side
    pairs: list[dict[str, Any]]
    failed: dict[str, Any]
    passed: dict[str, Any]
    audit: dict[str, Any]  # of the verifiers; and in words how often they erred
    audited: str
    differences: dict[str, Any]
    recipe: dict[str, Markup]  # file -> its text
    facts: dict[str, list[str]]
    cost: dict[str, Any]
    total: Any  # the last row of cost()
    elapsed: float  # seconds; the total's are a sum over stages
    runs: dict[str, Any]
    citation: str


def page(run: Run, numbers: pd.DataFrame, folder: Path) -> Page:
    kept = shown(folder, NAME)
    checks, trained = read_text(folder / "health.csv"), read(folder / FILE)
    spent = read_cost(folder / "cost.csv")
    audit = verifiers.audit(run)
    return Page(
        rollouts=script_json(kept.get("rollouts", [])),
        policies=kept.get("policies", 0),
        sides=completions.SIDES,
        pairs=kept.get("pairs", []),
        failed=cells(checks[checks.state != "ok"]),
        passed=cells(checks[checks.state == "ok"]),
        audit=cells(audit),
        audited=verifiers.errors(audit) if len(audit) else "",
        differences=cells(configuration.differences(run)),
        recipe={
            name: commented_yaml(path.read_text(encoding="utf-8")) for name, path in run.recipe_files.items()
        },
        facts=configuration.facts(trained),
        cost=cells(cost_shown(spent)),
        total=spent.iloc[-1],
        elapsed=elapsed(trained),
        runs=cells(configuration.runs(trained)),
        citation=configuration.citation(run.root / "CITATION.cff"),
    )
